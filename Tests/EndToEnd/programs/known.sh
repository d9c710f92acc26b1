# Answers with a stored login: says who is listed, how the answer ended, and what came.
. ./watchword.sh

read -r url wanted <<<"$1"
watchword_answer() {
    local challenge
    challenge=$(cat)
    jq -r '"known " + ([.knownUsers[] | if .domain then "\(.domain)\\\(.user)" else .user end] | join(","))' <<<"$challenge" >&2
    watchword_stored "$(jq -r --arg user "$wanted" '.knownUsers[] | select(.user == $user) | .id' <<<"$challenge")"
}
# What it writes is no part of the body, and a failure costs no fetch.
watchword_resolved() { jq -r '"resolved \(.outcome) \(.user)"'; return 1; }
printf 'body %s\n' "$(set -e; watchword_fetch "$url")" >&2
