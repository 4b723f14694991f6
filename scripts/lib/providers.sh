# shellcheck shell=bash
# A private fake provider with certificates and keys made on the spot. To be sourced after common.sh.
#
#   make_workspace
#   start_providers FOLDER_OF_BINARIES [OPTION…]    # options go to postbell-fake-providers
#   providers_environment                           # how `postbell` finds it

PROVIDERS_TEAM=DEMOTEAM01 PROVIDERS_KEY=DEMOKEY001 PROVIDERS_TOPIC=com.example.demo

# make_credentials FOLDER: an authority, a certificate for localhost signed by it, and a signing key as Apple issues
# them.
make_credentials() {
    local folder=$1
    mkdir -m 0700 "$folder"
    (
        umask 077
        cd "$folder"
        curve=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
        openssl req -x509 "${curve[@]}" -days 2 -subj '/CN=Postbell demo CA' -keyout ca.key -out ca.pem
        openssl req "${curve[@]}" -subj /CN=localhost -keyout server.key -out server.csr
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out server.pem \
            -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
        openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out AuthKey.p8
        openssl pkey -in AuthKey.p8 -pubout -out AuthKey.pub
    ) >"$WORKSPACE/openssl.log" 2>&1 || { cat "$WORKSPACE/openssl.log" >&2; die 'openssl could not make certificates'; }
}
