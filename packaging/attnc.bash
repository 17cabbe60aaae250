# Completion of attnc in bash: commands, options and targets are what `attnc help`, `attnc help COMMAND` and
# `attnc --targets` print.

_attnc() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} commands
    # --OPTION=VALUE is three words to bash
    if [ "$word" = = ]; then word=; elif [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    commands=$(attnc help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ] || { [ "$COMP_CWORD" = 2 ] && [ "$before" = help ]; }; then
        mapfile -t COMPREPLY < <(compgen -W "$commands help --version --targets" -- "$word")
        return
    fi
    case $before in
    --target) # several may stand there, with commas
        local earlier= targets
        targets="$(attnc --targets 2>/dev/null | sed 's/ .*//') native"
        [[ $word == *,* ]] && earlier=${word%,*},
        mapfile -t COMPREPLY < <(compgen -P "$earlier" -W "$targets" -- "${word##*,}")
        ;;
    --unroll) mapfile -t COMPREPLY < <(compgen -W "auto full loops" -- "$word") ;;
    --early-stopping) mapfile -t COMPREPLY < <(compgen -W "exact full heuristic never" -- "$word") ;;
    --length-form) mapfile -t COMPREPLY < <(compgen -W "gnmt power" -- "$word") ;;
    --color) mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$word") ;;
    --measure) mapfile -t COMPREPLY < <(compgen -W "cos kl rel" -- "$word") ;;
    --engine) mapfile -t COMPREPLY < <(compgen -W "compiled interp" -- "$word") ;;
    *)
        if [[ $word == -* ]]; then
            local options
            options=$(attnc help "${COMP_WORDS[1]}" 2>/dev/null | grep -oE -- '(^|[^a-z-])--?[a-z][a-z-]*' | grep -oE -- '--?[a-z].*')
            mapfile -t COMPREPLY < <(compgen -W "$options --help" -- "$word")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi
        ;;
    esac
}
complete -o filenames -F _attnc attnc
