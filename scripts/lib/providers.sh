# shellcheck shell=bash
# A private fake provider, and certificates for servers of others. To be sourced after common.sh.
#
#   make_workspace
#   start_providers FOLDER_OF_BINARIES [OPTION…]    # options go to postbell-fake-providers
#   providers_environment                           # exports how `postbell` finds it

PROVIDERS_TEAM=DEMOTEAM01 PROVIDERS_KEY=DEMOKEY001 PROVIDERS_TOPIC=com.example.demo

# Options of `start_providers`: Google's services as well, with an account of their own.
PROVIDERS_GOOGLE=(--fcm 127.0.0.1:0 --token-endpoint 127.0.0.1:0 --make-account)

# The fake makes its authority, its certificate and a signing key itself, anew each time.
start_providers() {
    local program=$1/postbell-fake-providers attempt
    shift
    PROVIDERS_FOLDER=$WORKSPACE/providers
    mkdir -m 0700 "$PROVIDERS_FOLDER"
    setpriv --pdeathsig TERM -- "$program" --certificates "$PROVIDERS_FOLDER" --make-key \
        --team-id "$PROVIDERS_TEAM" --key-id "$PROVIDERS_KEY" --topic "$PROVIDERS_TOPIC" \
        --port-file "$PROVIDERS_FOLDER/port" "$@" </dev/null >"$WORKSPACE/providers.log" 2>&1 &
    PROVIDERS=$!
    at_exit stop_providers
    for attempt in {1..100}; do
        [[ ! -s $PROVIDERS_FOLDER/port ]] || return 0
        kill -0 "$PROVIDERS" 2>/dev/null || break
        sleep 0.1
    done
    cat "$WORKSPACE/providers.log" >&2
    die 'the fake provider did not start'
}

stop_providers() {
    kill -TERM "$PROVIDERS" 2>/dev/null || true
    wait "$PROVIDERS" 2>/dev/null || true
}

providers_environment() {
    export APNS_KEY_FILE=$PROVIDERS_FOLDER/apns.p8 APNS_KEY_ID=$PROVIDERS_KEY APNS_TEAM_ID=$PROVIDERS_TEAM
    export APNS_TOPIC=$PROVIDERS_TOPIC POSTBELL_CA_FILE=$PROVIDERS_FOLDER/ca.pem
    POSTBELL_APNS_ENDPOINT=https://localhost:$(<"$PROVIDERS_FOLDER/port")
    export POSTBELL_APNS_ENDPOINT
    [[ -s $PROVIDERS_FOLDER/port.fcm ]] || return 0
    export FCM_SERVICE_ACCOUNT_FILE=$PROVIDERS_FOLDER/service-account.json
    POSTBELL_FCM_ENDPOINT=https://localhost:$(<"$PROVIDERS_FOLDER/port.fcm")
    POSTBELL_FCM_TOKEN_ENDPOINT=https://localhost:$(<"$PROVIDERS_FOLDER/port.token")
    export POSTBELL_FCM_ENDPOINT POSTBELL_FCM_TOKEN_ENDPOINT
}

# make_certificate FOLDER: an authority (ca.pem), and a certificate for localhost signed by it (server.pem, server.key).
make_certificate() {
    local folder=$1 curve=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
    mkdir -m 0700 "$folder"
    (
        umask 077
        cd "$folder"
        openssl req -x509 "${curve[@]}" -days 2 -subj '/CN=Postbell' -keyout ca.key -out ca.pem
        openssl req "${curve[@]}" -subj /CN=localhost -keyout server.key -out server.csr
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out server.pem \
            -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
    ) >"$WORKSPACE/openssl.log" 2>&1 || { cat "$WORKSPACE/openssl.log" >&2; die 'openssl could not make certificates'; }
}
