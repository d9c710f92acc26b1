# Prints the completions of zsh at the end of the line "$2", one match per line. $1 is the folder of the completion scripts.
# An interactive zsh runs in a pseudo-terminal; its compadd prints the matches instead of displaying them.
emulate -L zsh
zmodload zsh/zpty || exit 2
inner=$(mktemp) || exit 2
trap 'rm -f $inner $inner.dump' EXIT
cat >$inner <<'INNER'
PROMPT=
fpath=($COMPLETION_FOLDER $fpath)
autoload -Uz compinit
compinit -u -d $COMPLETION_DUMP
bindkey '^M' undefined
bindkey '^J' undefined
bindkey '^I' complete-word
mark() { print -r -- $'\1' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
zstyle ':completion:*' insert-tab false
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a hits
    builtin compadd -A hits "$@"
    (( $#hits )) && print -rl -- $hits
    # Adds the matches: without any, zsh would look for others.
    builtin compadd "$@"
}
print ready
INNER
export COMPLETION_FOLDER=$1 COMPLETION_DUMP=$inner.dump
zpty inner zsh -f -i || exit 2
zpty -w inner "source $inner"
repeat 20; do
    zpty -r inner line
    [[ $line == ready* ]] && break
done
[[ $line == ready* ]] || exit 2
zpty -n -w inner "$2"$'\t'
integer marks=0
while zpty -r inner line; do
    if [[ $line == *$'\1'* ]]; then
        (( ++marks == 2 )) && exit 0
    elif (( marks )); then
        print -r -- ${line%%$'\r\n'}
    fi
done
exit 3
