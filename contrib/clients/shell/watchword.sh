# A client for the Watchword broker, to be sourced by bash 4 or newer; uses socat and jq.
#
#   watchword_fetch URL [PARAMS]   writes the body to standard output, as it comes
#
# PARAMS is a JSON object with parameters of fetch/start: '{"method":"POST","body":{"type":"string","value":"a=b"}}'. The exit
# code is 0, 22 for a status of 400 or above (whose body is written all the same), 1 for an error, 2 when no broker runs, or the
# socket could be another user's.
#
# A challenge is answered by the function watchword_answer, which gets its parameters as JSON on standard input and writes the
# answer as JSON: {"action":"cancel"}, say. `watchword_credential` makes one of two lines, the user and the password;
# `watchword_stored` one of the stored logins in .knownUsers, by its id. Unless the script has an own one, watchword_answer asks at
# the terminal, where the name of a saved login is enough. The function watchword_resolved, if there is one, gets the parameters of
# auth/resolved, how an answer ended; what it writes goes to standard error. No secret is ever an argument of a program.

watchword_socket() {
    local runtime=/run/user/$UID
    case ${XDG_RUNTIME_DIR-} in /*) runtime=$XDG_RUNTIME_DIR ;; esac
    printf '%s\n' "${WATCHWORD_SOCKET:-$runtime/watchword/broker.sock}"
}

# Standard input: the user, a line feed, the password. Standard output: the answer.
watchword_credential() {
    jq -Rsc 'split("\n") | {action: "credential", credential: {type: "password", user: .[0], password: .[1]}}'
}

# `watchword_stored ID`. Standard output: the answer.
watchword_stored() {
    printf '%s' "$1" | jq -Rsc '{action: "credential", credential: {type: "stored", id: .}}'
}

# Standard input: a challenge, and then a name. Standard output: the id of the saved login with this very name; nothing if there is none.
_watchword_known() {
    jq -Rsr 'split("\n") | .[1] as $name | .[0] | fromjson
        | first((.knownUsers // [])[] | select((if .domain then "\(.domain)\\\(.user)" else .user end) == $name) | .id) // empty'
}

# `_watchword_shown EXPRESSION [CHARACTERS]`: text of a server for a terminal. Nothing in it acts there, or reverses the line, and it
# is cut after 200 characters or CHARACTERS.
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
        # The end of a host name says whose it is: a name has at most 253 characters, and none is cut.
        printf '%s asks for a login; it says: %s\n' \
            "$(_watchword_shown '(.protectionSpace | "\(.proxyType // .protocol)://\(.host):\(.port)")' 300 <<<"$challenge")" \
            "$(_watchword_shown .protectionSpace.realm <<<"$challenge")" >&"$terminal"
        if jq -e '.knownUsers' <<<"$challenge" >/dev/null; then
            printf 'Saved logins: %s. Type one of these names to use it.\n' "$(_watchword_shown \
                '([.knownUsers[] | (if .domain then "\(.domain)\\\(.user)" else .user end) | "\"\(.)\""] | join(", "))' 2000 <<<"$challenge")" >&"$terminal"
        fi
        # Without IFS, `read` removes blanks at both ends of what was typed.
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

# A socket that another user has put there would receive passwords. A shell has no SO_PEERCRED: what is checked before connecting is
# that the socket's file is this user's, and that nobody but this user and root can replace it or a directory above it.
_watchword_trusts() {
    local directory uid mode above='' reason=''
    directory=$(CDPATH='' cd -P -- "$(dirname -- "$1")" 2>/dev/null && pwd -P) || return 0
    while :; do
        read -r uid mode < <(stat -c '%u %a' -- "$directory") || return 1
        if ((uid != 0 && uid != EUID)); then reason="the directory $directory belongs to user $uid"; break; fi
        # In a sticky directory, such as /tmp, others cannot replace what is there.
        if ((8#$mode & 8#022)) && ! { [ -n "$above" ] && ((8#$mode & 8#1000)); }; then
            reason="the directory $directory can be written by other users (mode 0$mode)"
            break
        fi
        [ "$directory" != / ] || break
        directory=$(dirname -- "$directory") above=yes
    done
    if [ -z "$reason" ] && [ -e "$1" ] && ! [ -O "$1" ]; then reason="it belongs to another user"; fi
    [ -n "$reason" ] || return 0
    echo "watchword: refusing to use the socket $1: $reason; it has to be in a directory that only you can write to," \
        'such as $XDG_RUNTIME_DIR/watchword' >&2
    return 1
}

# In a subshell: its processes end with it, and the script's own descriptors and traps stay as they are.
watchword_fetch() (
    path=$(watchword_socket)
    _watchword_trusts "$path" || exit 2
    if ! [ -S "$path" ] || ! socat -u /dev/null "UNIX-CONNECT:$path" 2>/dev/null; then
        echo "watchword: no broker listens at $path: start one with \`systemctl --user start watchword.socket\` or \`watchwordd\`" >&2
        exit 2
    fi
    coproc WATCHWORD { exec socat - "UNIX-CONNECT:$path"; }
    trap 'kill "$WATCHWORD_PID" 2>/dev/null' EXIT
    # Of their own numbers: those of a coprocess are closed in pipelines.
    exec {from_broker}<&"${WATCHWORD[0]}" {to_broker}>&"${WATCHWORD[1]}"
    _watchword_converse "$path" "$1" "${2:-"{}"}"
)

_watchword_converse() {
    local path=$1 line status='' token=''
    jq -nc '{jsonrpc: "2.0", id: 1, method: "initialize", params: {client: {name: "shell"}, protocolVersion: 1,
        capabilities: {challenge: {delivery: "request"}}}}' >&"$to_broker"
    # URL and parameters may hold a secret: both come on standard input, as two JSON values, so that neither can add to the other.
    { printf '%s' "$2" | jq -Rs . && printf '%s\n' "$3"; } |
        jq -sc 'if length == 2 and (.[1] | type) == "object"
            then {jsonrpc: "2.0", id: 2, method: "fetch/start", params: (.[1] + {url: .[0]})}
            else error("watchword: PARAMS is not one JSON object") end' >&"$to_broker" || return 1
    while IFS= read -r line <&"$from_broker"; do
        # What the broker could not read it answers without an id (JSON-RPC 2.0 section 5).
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
    echo "watchword: the broker at $path has closed the connection: look at its log, and try again" >&2
    return 1
}

_watchword_reply() {
    local answer
    answer=$(watchword_answer <<<"$(jq -c .params <<<"$1")") || answer=''
    # Not as here-documents, which older shells keep in files for a moment.
    printf '%s' "$answer" | jq -e . >/dev/null 2>&1 || answer='{"action":"cancel"}'
    # Two values, one after the other: the request of the broker, and the answer.
    printf '%s\n%s\n' "$1" "$answer" | jq -sc '{jsonrpc: "2.0", id: .[0].id, result: .[1]}' >&"$to_broker"
}

# The bytes of the body, after one line that says whether they come. Whether they are all is said by fetch/completed.
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
