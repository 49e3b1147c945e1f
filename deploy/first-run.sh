#!/bin/sh
# From an empty database to an agent that may propose: docs/first-run.md explains each
# step. Change the names, the addresses and policy.yaml beside this file first. It asks for
# a password for each person, or reads them as lines from standard input, and ends at the
# first error. It leaves what exists as it is, so it may be run again.
set -eu
cd "$(dirname "$0")"

has() { # Whether a line of the list begins with this word.
    printf '%s\n' "$1" | while read -r first _; do
        if [ "$first" = "$2" ]; then echo yes; fi
    done
}

has_person() { [ "$(has "$people" "$1")" ]; }

counterseal migrate

people=$(counterseal people list)
has_person adam || counterseal people add adam --email adam@example.com --role administrator
has_person alma || counterseal people add alma --email alma@example.com --role administrator --by adam

versions=$(counterseal policy list)
[ "$(has "$versions" 1)" ] || counterseal policy load --by adam --file policy.yaml

has_person rita || counterseal people add rita --email rita@example.com --role reviewer --all-queues --by adam
has_person sue || counterseal people add sue --email sue@example.com --role supervisor --all-queues --by adam
has_person owen || counterseal people add owen --email owen@example.com --role "agent owner" --by adam

case $versions in
*active*) ;;
*) counterseal policy load --by alma --activate 1 ;;
esac

agents=$(counterseal agents list)
[ "$(has "$agents" ada)" ] || counterseal agents register ada --owner owen --by adam --tool '*'
