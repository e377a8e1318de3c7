# shellcheck shell=bash
#
# The functions that the scripts of this folder share. Each script sources this file first. Sourcing it
# changes to the folder of compose.yaml, and makes the script end at the first command that fails.

set -euo pipefail
# Backups, keys and audit lines are for their owner alone.
umask 077

script=deploy/$(basename -- "$0")
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

readonly REPLICAS=(app1 app2)
# How long a replica may take until it is ready, in seconds. The operator can set LLAVERO_WAIT.
readonly PATIENCE=${LLAVERO_WAIT:-60}
# The application_name of the database sessions that this script opens.
readonly SESSION=$script-$$
# The folder for the audit lines of removed containers.
readonly AUDIT=audit

# say TEXT...: prints a line for the operator.
say() { printf '%s\n' "$*"; }

# die SENTENCE: prints the sentence to stderr and ends the script with status 1.
die() {
  printf '%s: %s\n' "$script" "$*" >&2
  exit 1
}

# quietly COMMAND...: runs the command. Prints its output to stderr if it fails, and else nothing.
quietly() {
  "$@" >"$output" 2>&1 && return
  cat -- "$output" >&2
  return 1
}

[[ $PATIENCE =~ ^[1-9][0-9]{0,4}$ ]] || die 'LLAVERO_WAIT is not a number of seconds.'

# usage TEXT [ARGUMENT...]: if an argument is --help or -h, prints the text and ends the script.
usage() {
  local text=$1 argument
  shift
  for argument; do
    if [[ $argument == --help || $argument == -h ]]; then
      printf '%s\n' "$text"
      exit 0
    fi
  done
}

# wrong_use [ARGUMENT]: prints how to get help and ends the script with status 2. ARGUMENT is the argument
# that is not valid, if there is one.
wrong_use() {
  if (($#)); then printf '%s: the argument %s is not valid.\n' "$script" "$1" >&2; fi
  printf 'See %s --help.\n' "$script" >&2
  exit 2
}

# compose ARGUMENT...: runs Docker Compose: the plugin, or else docker-compose (see require_deployment).
compose() { "${COMPOSE[@]}" "$@"; }
COMPOSE=(docker compose)

# require_deployment: ends the script unless Docker answers, Compose is installed, .env exists, and
# compose.yaml is valid with the variables in .env.
require_deployment() {
  local problem
  command -v docker >/dev/null || die 'docker is not installed.'
  docker version >/dev/null 2>&1 || die 'the Docker engine does not answer.'
  docker compose version >/dev/null 2>&1 || COMPOSE=(docker-compose)
  command -v "${COMPOSE[0]}" >/dev/null || die 'Docker Compose is not installed.'
  [[ -f .env ]] || die "there is no $PWD/.env: copy .env.example and fill it in."
  problem=$(compose config 2>&1 >/dev/null) || die "compose.yaml is not valid with this .env. $problem"
}

# take_turn: ends the script if another script that changes the deployment is running. Where flock is not
# installed, nothing is checked.
take_turn() {
  command -v flock >/dev/null || return 0
  # The kernel releases the lock when this process and all commands that it has started have ended.
  exec 9<.
  flock --nonblock 9 || die 'another script of deploy/ is running.'
}

# require_audit_folder: creates the folder $AUDIT if it is missing. Ends the script if the folder cannot be
# created or written.
require_audit_folder() {
  [[ -d $AUDIT ]] || mkdir -- "$AUDIT" 2>/dev/null || die "the folder $PWD/$AUDIT cannot be created."
  [[ -w $AUDIT ]] || die "the folder $PWD/$AUDIT cannot be written."
}

# Which lines of a log keep_audit copies: a command that copies them from stdin to stdout.
kept_lines=audit_lines

# keep_audit CONTAINER NAME: copies the audit lines of the container's log to a new file in $AUDIT, because
# Docker deletes the log together with the container. NAME becomes part of the name of the file. Writes no
# file if there are no audit lines. Fails if the log cannot be read or the file cannot be written.
keep_audit() {
  local driver file part=$AUDIT/.part
  driver=$(docker inspect --format '{{.HostConfig.LogConfig.Type}}' "$1") || return 1
  # Other drivers send the log to a place from which Docker does not delete it.
  [[ $driver == json-file || $driver == local ]] || return 0

  # A container may be copied twice, for example if its replacement was interrupted. The time in the name
  # keeps the second copy from overwriting the first one, which may have lines that Docker has deleted since.
  file=$AUDIT/$2-${1:0:12}-$(date +%Y%m%d%H%M%S).jsonl
  if docker logs "$1" 2>/dev/null | "$kept_lines" >"$part" && mv -- "$part" "$file"; then
    [[ -s $file ]] || rm -- "$file"
  else
    rm -f -- "$part"
    return 1
  fi
}

# audit_lines: copies the audit lines of a log from stdin to stdout. Their level is 35.
audit_lines() {
  # grep exits with 1 if it finds no line, and with 2 if it fails.
  grep '"level":35,' || (($? == 1))
}

# keep_audit_of REPLICA: calls keep_audit for each container of the replica, also for a stopped one.
keep_audit_of() {
  local ids id
  ids=$(compose ps --all --quiet "$1") || return 1
  for id in $ids; do
    keep_audit "$id" "$1" || return 1
  done
}

# require_database: ends the script if the database does not answer.
require_database() {
  in_database pg_isready --quiet --host=127.0.0.1 --username=llavero </dev/null 2>/dev/null \
    || die 'the database does not answer. Start it: docker compose up --detach db'
}

# in_database COMMAND...: runs a command in the container of the database. The sessions that the command
# opens are named $SESSION.
in_database() { compose exec -T -e PGAPPNAME="$SESSION" db "$@"; }

# end_statements: ends the database sessions of this script, and with them the statements that are still
# running. This is needed because a command in the container continues when the script is interrupted.
end_statements() {
  query postgres "select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where application_name = '$SESSION' and pid <> pg_backend_pid()" >/dev/null 2>&1
}

# query DATABASE SQL: executes a statement and prints its rows, one per line.
query() {
  in_database psql --username=llavero --dbname="$1" --no-psqlrc --quiet --tuples-only --no-align \
    --command="$2" </dev/null
}

# is_ready REPLICA: succeeds when the replica answers 200 to /health/ready.
is_ready() {
  local id
  id=$(compose ps --quiet "$1" 2>/dev/null) || return 1
  # shellcheck disable=SC2016 # JavaScript expands this, not the shell.
  [[ $id ]] && docker exec "$id" node -e '
    fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/ready`, { signal: AbortSignal.timeout(4000) })
      .then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))
  ' >/dev/null 2>&1
}

# wait_until_ready REPLICA: waits until the replica is ready. If it is not ready after PATIENCE seconds,
# prints the last lines of its log and fails.
wait_until_ready() {
  local deadline=$((SECONDS + PATIENCE))
  until is_ready "$1"; do
    if ((SECONDS >= deadline)); then
      printf '%s: %s is not ready after %s s. The end of its log:\n' "$script" "$1" "$PATIENCE" >&2
      compose logs --no-color --no-log-prefix --tail=20 "$1" >&2 || true
      return 1
    fi
    sleep 1
  done
}

# replace_replica REPLICA: stops the replica and copies its audit lines to $AUDIT. Then creates its container
# again from the image, compose.yaml and .env, and waits until it is ready. Fails if it does not become ready.
replace_replica() {
  say "Replacing $1."
  quietly compose stop "$1" || return 1
  if ! quietly keep_audit_of "$1"; then
    say "The audit lines of $1 could not be copied to $PWD/$AUDIT, so $1 is not replaced but started again." >&2
    compose start "$1" >/dev/null 2>&1 || say "$1 could not be started: docker compose start $1" >&2
    return 1
  fi
  quietly compose up --detach --no-deps --force-recreate "$1" || return 1
  wait_until_ready "$1" || return 1
  # The other replica must not stop before the proxy's health check has found this one ready.
  sleep 2
}

# This is `true` while replace_all is running, and after it has failed.
replacing=

# replace_all: replaces the replicas one after the other, beginning with those that are not ready.
# Ends the script at the first one that does not become ready, and does not replace the remaining ones.
replace_all() {
  local replica ready=() broken=()
  replacing=true
  for replica in "${REPLICAS[@]}"; do
    if is_ready "$replica"; then ready+=("$replica"); else broken+=("$replica"); fi
  done
  for replica in "${broken[@]}" "${ready[@]}"; do
    replace_replica "$replica" || die 'the replicas have not all been replaced.'
  done
  replacing=
}

# say_who_serves: if replace_all is running or has failed, prints for each replica whether it is ready.
say_who_serves() {
  local replica
  [[ $replacing ]] || return 0
  if ! docker version >/dev/null 2>&1; then
    say 'The Docker engine does not answer, so it is not known which replica serves.'
    return 0
  fi
  for replica in "${REPLICAS[@]}"; do
    if is_ready "$replica"; then say "$replica is ready and serves."; else say "$replica does not serve."; fi
  done
}

# A temporary file for the output of a command.
output=$(mktemp "${TMPDIR:-/tmp}/llavero.XXXXXX")

# at_end STATUS: called when the script ends, with its exit status. A script may define it again.
at_end() { :; }

# The file descriptors 7 and 8 are copies of the script's own stdout and stderr. If a signal arrives while the
# output of a function is redirected, `finish` uses these copies and still prints to the script's own output.
exec 7>&1 8>&2

# finish: called by the shell when the script ends for any reason. Calls at_end and removes the temporary file.
finish() {
  local status=$?
  exec >&7 2>&8
  # at_end may have to undo changes, so it must not end at another signal or because the terminal is closed.
  trap '' HUP INT PIPE TERM
  set +e
  at_end "$status"
  rm -f -- "$output"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# --- The keys in .env ------------------------------------------------------------------------------

# require_keys: ends the script if .env cannot be written or has no JWT_SECRET, or if a variable of the shell
# would override a key in .env.
require_keys() {
  [[ -z ${JWT_SECRET+set}${JWT_SECRET_PREVIOUS+set} ]] \
    || die 'JWT_SECRET or JWT_SECRET_PREVIOUS is set in this shell and overrides .env: unset it.'
  [[ -w .env && -w $(dirname -- "$(readlink -f .env)") ]] || die "$PWD/.env cannot be written."
  [[ $(key JWT_SECRET) ]] || die 'JWT_SECRET is not in .env.'
}

# key NAME: prints the value of a variable as it is written in .env, or nothing if it is not set.
key() { sed -n "s/^$1=//p" .env | tail -n 1; }

# new_key: prints 64 random hexadecimal digits.
new_key() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# write_keys SECRET PREVIOUS: writes JWT_SECRET and JWT_SECRET_PREVIOUS into .env in one step. If PREVIOUS is
# empty, the line of JWT_SECRET_PREVIOUS becomes a comment. If write_keys fails, .env is as it was.
write_keys() {
  local file
  file=$(readlink -f .env)
  if new_env "$file" "$1" "$2" && mv -- "$file.new" "$file"; then
    return 0
  fi
  rm -f -- "$file.new"
  return 1
}

# new_env FILE SECRET PREVIOUS: writes a copy of FILE with both keys to FILE.new.
new_env() {
  # Copying first keeps the owner and the mode of the file.
  cp -p -- "$1" "$1.new" || return 1
  SECRET=$2 PREVIOUS=$3 awk '
    BEGIN {
      previous = "JWT_SECRET_PREVIOUS=" ENVIRON["PREVIOUS"]
      if (ENVIRON["PREVIOUS"] == "") previous = "#" previous
    }
    /^JWT_SECRET=/ {
      print "JWT_SECRET=" ENVIRON["SECRET"]
      next
    }
    /^#?JWT_SECRET_PREVIOUS=/ {
      if (!written) print previous
      written = 1
      next
    }
    { print }
    END { if (!written) print previous }
  ' "$1" >"$1.new"
}
