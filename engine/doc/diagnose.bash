# Completion of `diagnose` for bash; made by `diagnose help --completion`.
_diagnose()
{
    local line=${COMP_LINE:0:COMP_POINT} word words
    word=${line##*[[:space:]]}
    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
    "compress"*) words=" --budget= --json --since= --until= --threads= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "search"*) words=" --text= --count= --floor= --offline --json --threads= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "prompt"*) words=" --no-memory --threads= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents list"*) words=" --cause= --kind=incident --kind=follow_on --kind=harmless --origin=user --origin=corpus --origin=confirmed --origin=corrected --text= --limit= --json --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents show"*) words=" --json --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents add"*) words=" --cause= --from= --fix= --title= --explanation= --source= --json --threads= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents confirm"*) words=" --fix= --title= --explanation= --source= --json --threads= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents correct"*) words=" --cause= --fix= --title= --explanation= --source= --json --threads= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents remove"*) words=" --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents import"*) words=" --clash=fail --clash=keep --clash=replace --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents export"*) words=" --cause= --kind=incident --kind=follow_on --kind=harmless --origin=user --origin=corpus --origin=confirmed --origin=corrected --text= --redact --salvage --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "incidents lint"*) words=" --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "reindex"*) words=" --full --prune --offline --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "doctor"*) words=" --offline --json --offline --budget-seconds= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "rules list"*) words=" --json --patterns --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "rules show"*) words=" --json --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "rules test"*) words=" --id= --quiet-logs= --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "eval"*) words=" --search --ask --all --resume= --budget-seconds= --no-memory --offline --json --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "version"*) words=" --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    "help"*) words=" --man --completion --help" ;;
    *) words=" --json --interactive --each --exit-decision --offline --ask --budget-seconds= --record= --replay= --no-memory --since= --until= --threads= --version --rules= --config= --no-cache --engine=auto --engine=pcre2 --color=auto --color=always --color=never --width= --verbose --quiet --help" ;;
    esac
    if [[ $word != -* ]]; then
        words=
        [[ $COMP_CWORD -eq 1 ]] && words=" diagnose compress search prompt incidents reindex doctor rules eval version help"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" list"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" show"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" add"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" confirm"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" correct"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" remove"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" import"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" export"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == incidents ]] && words+=" lint"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == rules ]] && words+=" list"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == rules ]] && words+=" show"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == rules ]] && words+=" test"
        [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == help ]] && words+=" ask embedding"
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ $word == --*=* ]] && COMPREPLY=("${COMPREPLY[@]#*=}")
}
complete -o default -o nosort -F _diagnose diagnose
