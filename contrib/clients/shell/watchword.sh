# A client for the Watchword broker, to be sourced by bash 4 or newer; requires socat and jq.
#
#   watchword_fetch URL [PARAMS]   writes the body to standard output as it arrives
#
# PARAMS is a JSON object with parameters of fetch/start: '{"method":"POST","body":{"type":"string","value":"a=b"}}'. The exit
# status is 0; 22 for an HTTP status of 400 or above, whose body is still written; 1 for an error; 2 if no broker runs, or the
# socket may belong to another user.
#
# The function watchword_answer answers challenges: it reads the parameters of auth/challenge as JSON from standard input and writes
# the answer as JSON, such as {"action":"cancel"}. `watchword_credential` makes an answer from two lines, user and password;
# `watchword_stored` makes one from the id of a stored login in .knownUsers. The default watchword_answer prompts at the terminal and
# also accepts the name of a saved login. The function watchword_resolved, if defined, reads the parameters of auth/resolved; its
# output goes to standard error. Secrets are never arguments of a program.

# The version of the client, which is sent to the broker.
watchword_version=0.4.0

watchword_socket() {
    local runtime=/run/user/$UID
    case ${XDG_RUNTIME_DIR-} in /*) runtime=$XDG_RUNTIME_DIR ;; esac
    printf '%s\n' "${WATCHWORD_SOCKET:-$runtime/watchword/broker.sock}"
}

# Reads the user and the password, separated by a line feed; writes the answer.
watchword_credential() {
    jq -Rsc 'split("\n") | {action: "credential", credential: {type: "password", user: .[0], password: .[1]}}'
}

# `watchword_stored ID` writes the answer with that stored login.
watchword_stored() {
    printf '%s' "$1" | jq -Rsc '{action: "credential", credential: {type: "stored", id: .}}'
}

# Reads a challenge and a name, one per line; writes the id of the saved login with exactly this name, if any.
_watchword_known() {
    jq -Rsr 'split("\n") | .[1] as $name | .[0] | fromjson
        | first((.knownUsers // [])[] | select((if .domain then "\(.domain)\\\(.user)" else .user end) == $name) | .id) // empty'
}

# `_watchword_shown EXPRESSION [CHARACTERS]` prints a server's text for a terminal: with control and bidirectional characters replaced,
# and cut after CHARACTERS (default 200).
_watchword_shown() {
    jq -r "$1"' // "" | tostring | .[0:'"${2:-200}"'] | gsub("[\\p{C}\\x{2028}\\x{2029}]"; "?")'
}

if ! declare -F watchword_answer >/dev/null; then
    watchword_answer() {
        local challenge user password known
        challenge=$(cat)
        if ! { exec {terminal}<>/dev/tty; } 2>/dev/null || ! jq -e '.accepts | index("password")' <<<"$challenge" >/dev/null; then
            echo '{"action":"default"}'
            return
        fi
        # The end of a host name identifies its owner, so it must not be cut: 300 characters suffice for every name (at most 253).
        printf '%s asks for a login; it says: %s\n' \
            "$(_watchword_shown '(.protectionSpace | "\(.proxyType // .protocol)://\(.host):\(.port)")' 300 <<<"$challenge")" \
            "$(_watchword_shown .protectionSpace.realm <<<"$challenge")" >&"$terminal"
        if jq -e '.knownUsers' <<<"$challenge" >/dev/null; then
            printf 'Saved logins: %s. Type one of these names to use it.\n' "$(_watchword_shown \
                '([.knownUsers[] | (if .domain then "\(.domain)\\\(.user)" else .user end) | "\"\(.)\""] | join(", "))' 2000 <<<"$challenge")" >&"$terminal"
        fi
        # With the default IFS, `read` would strip blanks at both ends.
        IFS= read -r -u "$terminal" -p 'User: ' user || { echo '{"action":"cancel"}'; return; }
        known=$(printf '%s\n%s' "$(jq -c . <<<"$challenge")" "$user" | _watchword_known)
        if [ -n "$known" ]; then
            watchword_stored "$known"
        elif IFS= read -r -s -u "$terminal" -p 'Password: ' password; then
            printf '\n' >&"$terminal"
            printf '%s\n%s\n' "$user" "$password" | watchword_credential
        else
            echo '{"action":"cancel"}'
        fi
    }
fi

# Fails if another user could receive the passwords sent to the socket. A shell has no SO_PEERCRED, so this function checks before
# connecting that this user owns the socket file, and that only this user and root can replace it or a directory above it.
_watchword_trusts() {
    local directory uid mode above='' reason=''
    directory=$(CDPATH='' cd -P -- "$(dirname -- "$1")" 2>/dev/null && pwd -P) || return 0
    while :; do
        read -r uid mode < <(stat -c '%u %a' -- "$directory") || return 1
        if ((uid != 0 && uid != EUID)); then reason="the directory $directory belongs to user $uid"; break; fi
        # In a sticky directory, such as /tmp, others cannot replace existing files.
        if ((8#$mode & 8#022)) && ! { [ -n "$above" ] && ((8#$mode & 8#1000)); }; then
            reason="the directory $directory can be written by other users (mode 0$mode)"
            break
        fi
        [ "$directory" != / ] || break
        directory=$(dirname -- "$directory") above=yes
    done
    # guard: client-owner-shell
    if [ -z "$reason" ] && [ -e "$1" ] && ! [ -O "$1" ]; then reason="it belongs to another user"; fi
    [ -n "$reason" ] || return 0
    echo "watchword: refusing to use the socket $1: $reason; the socket must be in a directory that only you can write to," \
        'such as $XDG_RUNTIME_DIR/watchword' >&2
    return 1
}

# Runs in a subshell, so that the descriptors and traps of the script stay unchanged, and the coprocess ends with the function.
watchword_fetch() (
    path=$(watchword_socket)
    _watchword_trusts "$path" || exit 2
    if ! [ -S "$path" ] || ! socat -u /dev/null "UNIX-CONNECT:$path" 2>/dev/null; then
        echo "watchword: no broker listens at $path; start one with \`systemctl --user start watchword.socket\` or \`watchwordd\`" >&2
        exit 2
    fi
    coproc WATCHWORD { exec socat - "UNIX-CONNECT:$path"; }
    trap 'kill "$WATCHWORD_PID" 2>/dev/null' EXIT
    # The descriptors are duplicated, because bash closes the descriptors of a coprocess in pipelines.
    exec {from_broker}<&"${WATCHWORD[0]}" {to_broker}>&"${WATCHWORD[1]}"
    _watchword_converse "$path" "$1" "${2:-"{}"}"
)

_watchword_converse() {
    local path=$1 line status='' token=''
    jq -nc --arg version "$watchword_version" '{jsonrpc: "2.0", id: 1, method: "initialize",
        params: {client: {name: "shell", version: $version}, protocolVersion: 1, capabilities: {challenge: {delivery: "request"}}}}' >&"$to_broker"
    # URL and parameters may contain secrets, so jq reads both from standard input, as separate JSON values.
    { printf '%s' "$2" | jq -Rs . && printf '%s\n' "$3"; } |
        jq -sc 'if length == 2 and (.[1] | type) == "object"  # guard: shell-one-params-object
            then {jsonrpc: "2.0", id: 2, method: "fetch/start", params: (.[1] + {url: .[0]})}
            else error("watchword: PARAMS must be one JSON object") end' >&"$to_broker" || return 1
    while IFS= read -r line <&"$from_broker"; do
        # Errors for an unreadable request have no id (JSON-RPC 2.0 section 5).
        case $(jq -r 'if .method then .method elif .id == null and (.error.code? == -32700 or .error.code? == -32600)
            then "unreadable" else "\(if .error then "error" else "result" end) \(.id | tojson)" end' <<<"$line") in
            auth/challenge) _watchword_reply "$line" ;;
            auth/resolved) if declare -F watchword_resolved >/dev/null; then jq -c .params <<<"$line" | watchword_resolved >&2 || :; fi ;;
            'error 1' | 'error 2' | unreadable) _watchword_error .error <<<"$line"; return 1 ;;
            'result 2') token=$(jq -c .result.attachToken <<<"$line") ;;
            fetch/headers)
                status=$(jq .params.status <<<"$line")
                _watchword_body "$path" "$token" || return 1 ;;
            fetch/completed)
                if jq -e .params.error <<<"$line" >/dev/null; then _watchword_error .params.error <<<"$line"; return 1; fi
                [ "${status:-0}" -lt 400 ] || return 22
                return 0 ;;
        esac
    done
    echo "watchword: the broker at $path closed the connection; see its log, then retry" >&2
    return 1
}

_watchword_reply() {
    local answer
    answer=$(watchword_answer <<<"$(jq -c .params <<<"$1")") || answer=''
    # Pipes instead of here-documents, which older versions of bash write to temporary files.
    printf '%s' "$answer" | jq -e . >/dev/null 2>&1 || answer='{"action":"cancel"}'
    # Two JSON values: the request of the broker and the answer.
    printf '%s\n%s\n' "$1" "$answer" | jq -sc '{jsonrpc: "2.0", id: .[0].id, result: .[1]}' >&"$to_broker"
}

# Writes the body, which follows a one-line reply. Only fetch/completed tells whether the body is complete.
_watchword_body() {
    printf '{"jsonrpc":"2.0","id":1,"method":"fetch/attach","params":{"token":%s,"side":"response"}}\n' "$2" |
        socat STDIO,ignoreeof "UNIX-CONNECT:$1" | {
            IFS= read -r reply || exit 1
            if jq -e .error <<<"$reply" >/dev/null; then _watchword_error .error <<<"$reply"; exit 1; fi
            cat
        }
}

_watchword_error() {
    local input
    input=$(cat)
    printf 'watchword: %s (%s)\n' "$(_watchword_shown "($1 | .data.detail // .message)" <<<"$input")" \
        "$(_watchword_shown "$1.data.kind" <<<"$input")" >&2
}
