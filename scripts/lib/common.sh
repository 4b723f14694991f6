# shellcheck shell=bash
# Shared by all scripts: where the tree is, how a script speaks, and how it leaves nothing behind.
# To be sourced from bash, never run.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
PYTHON_HOME=$ROOT/.build/python
NODE_HOME=$ROOT/.build/node
PATH=$PATH:/usr/sbin:/sbin # Debian keeps nghttpd there, and a normal user's path does not

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    BOLD=$'\e[1m' DIM=$'\e[2m' RED=$'\e[31m' GREEN=$'\e[32m' YELLOW=$'\e[33m' PLAIN=$'\e[0m'
else
    BOLD='' DIM='' RED='' GREEN='' YELLOW='' PLAIN=''
fi

# step TEXT: a heading for the reader who watches.
step() { printf '%s==>%s %s\n' "$BOLD" "$PLAIN" "$*"; }

# warn TEXT: something the reader should know; the script goes on.
warn() { printf '%swarning:%s %s\n' "$YELLOW" "$PLAIN" "$*" >&2; }

# die TEXT: the script cannot go on. The exit trap cleans up.
die() {
    printf '%serror:%s %s\n' "$RED" "$PLAIN" "$*" >&2
    exit 1
}

is_root() { [[ $(id -u) -eq 0 ]]; }

# at_exit COMMAND: run COMMAND when the script ends, however it ends; last registered, first run. EXIT_STATUS holds the
# status the script ends with.
EXIT_ACTIONS=()
at_exit() { EXIT_ACTIONS+=("$1"); }

run_exit_actions() {
    EXIT_STATUS=$?
    local index
    trap - EXIT
    trap '' INT TERM HUP
    for ((index = ${#EXIT_ACTIONS[@]} - 1; index >= 0; index--)); do
        eval "${EXIT_ACTIONS[index]}" || true
    done
    exit "$EXIT_STATUS"
}
trap run_exit_actions EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# supervised SECONDS COMMAND…: run COMMAND in a process group of its own and wait for it, at most SECONDS. Unlike with a
# plain foreground command, a signal to the script ends the command at once, with all that it started.
SUPERVISED_GROUP='' SUPERVISED_WATCHER=''
supervised() {
    local limit=$1 status=0
    shift
    setsid setpriv --pdeathsig TERM -- "$@" <&0 &
    SUPERVISED_GROUP=$!
    watch_supervised "$limit" "$*" &
    SUPERVISED_WATCHER=$!
    wait "$SUPERVISED_GROUP" || status=$?
    end_watcher
    SUPERVISED_GROUP=''
    return "$status"
}

# Looks once a second whether time is up, and ends silently when the script itself is no more.
watch_supervised() {
    local limit=$1 seconds
    trap - EXIT INT TERM HUP
    for ((seconds = 0; seconds < limit; seconds++)); do
        read -r -t 1 <> <(:) || true # a sleep that is no process of its own
        kill -0 "$$" 2>/dev/null || exit 0
    done
    warn "still running after $limit s, ended: $2"
    end_group
}

end_watcher() {
    [[ -n $SUPERVISED_WATCHER ]] || return 0
    kill "$SUPERVISED_WATCHER" 2>/dev/null || true
    wait "$SUPERVISED_WATCHER" 2>/dev/null || true
    SUPERVISED_WATCHER=''
}

end_group() {
    local attempt
    kill -TERM -- "-$SUPERVISED_GROUP" 2>/dev/null || return 0
    for attempt in {1..30}; do
        kill -0 -- "-$SUPERVISED_GROUP" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL -- "-$SUPERVISED_GROUP" 2>/dev/null || true
}

end_supervised() {
    end_watcher
    [[ -z $SUPERVISED_GROUP ]] || end_group
}
at_exit end_supervised

# make_workspace: sets WORKSPACE to a new folder that every user of the machine can traverse, removed at the end. It is
# short, because the path of a Unix socket holds at most 107 bytes.
make_workspace() {
    local parent=${TMPDIR:-/tmp}
    if ((${#parent} > 40)) || { is_root && ! traversable_by_all "$parent"; }; then
        parent=/tmp
    fi
    WORKSPACE=$(mktemp -d "$parent/postbell.XXXXXX")
    chmod 0711 "$WORKSPACE"
    at_exit 'rm -rf -- "$WORKSPACE"'
}

# traversable_by_all FOLDER: whether everyone may pass through FOLDER and all folders above it.
traversable_by_all() {
    local folder mode
    folder=$(realpath "$1")
    while [[ $folder != / ]]; do
        mode=$(stat -c %a "$folder")
        ((8#$mode & 1)) || return 1
        folder=$(dirname "$folder")
    done
}

# free_port: prints a TCP port of the loopback interface on which nobody listens at this moment.
free_port() {
    local port attempt
    for attempt in {1..50}; do
        port=$((20000 + RANDOM % 12000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            printf '%s\n' "$port"
            return 0
        fi
    done
    die 'found no free port on 127.0.0.1'
}

# seconds_since START: whole seconds since START, which is a value of $SECONDS.
seconds_since() { printf '%d' $((SECONDS - $1)); }
