# Answers with a stored login, and prints the listed users, the outcome of the answer, and the body.
. ./watchword.sh

read -r url wanted <<<"$1"
watchword_answer() {
    local challenge
    challenge=$(cat)
    jq -r '"known " + ([.knownUsers[] | if .domain then "\(.domain)\\\(.user)" else .user end] | join(","))' <<<"$challenge" >&2
    watchword_stored "$(jq -r --arg user "$wanted" '.knownUsers[] | select(.user == $user) | .id' <<<"$challenge")"
}
# Its output is not part of the body, and its failure does not affect the fetch.
watchword_resolved() { jq -r '"resolved \(.outcome) \(.user)"'; return 1; }
printf 'body %s\n' "$(set -e; watchword_fetch "$url")" >&2
