# shellcheck shell=bash
#
# The functions that the scripts of this folder share. Each script sources this file first. It changes to
# the folder of compose.yaml, and makes the script end at the first command that fails.

set -euo pipefail

script=deploy/$(basename -- "$0")
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

readonly REPLICAS=(app1 app2)
# How long a replica may take until it is ready, in seconds.
readonly PATIENCE=${LLAVERO_WAIT:-60}
# The name of the database sessions of this script.
readonly SESSION=$script-$$
# The folder for the audit of removed containers.
readonly AUDIT=audit

# say TEXT...: prints a line for the operator.
say() { printf '%s\n' "$*"; }

# die SENTENCE: prints the sentence to stderr and ends the script with 1.
die() {
  printf '%s: %s\n' "$script" "$*" >&2
  exit 1
}

# failed SENTENCE: like `die`, but first prints the output of the failed command from the file $notes.
failed() {
  cat -- "$notes" >&2
  die "$*"
}

[[ $PATIENCE =~ ^[1-9][0-9]{0,4}$ ]] || die 'LLAVERO_WAIT is not a number of seconds.'

# usage TEXT [ARGUMENT...]: prints the text and ends the script if an argument is --help or -h.
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

# wrong_use [ARGUMENT]: ends the script with 2; names the argument that is not valid, if there is one.
wrong_use() {
  if (($#)); then printf '%s: %s is not understood.\n' "$script" "$1" >&2; fi
  printf 'See %s --help.\n' "$script" >&2
  exit 2
}

# compose ARGUMENT...: runs Docker Compose, either the plugin or the program docker-compose.
compose() {
  if docker compose version >/dev/null 2>&1; then
    docker compose "$@"
  else
    docker-compose "$@"
  fi
}

# require_deployment: ends the script unless Docker, Compose and .env are there and compose.yaml is valid.
require_deployment() {
  local problem
  command -v docker >/dev/null || die 'docker is not installed.'
  docker version >/dev/null 2>&1 || die 'the Docker engine does not answer.'
  docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null \
    || die 'Docker Compose is not installed.'
  [[ -f .env ]] || die "there is no $PWD/.env: copy .env.example and fill it in."
  problem=$(compose config 2>&1 >/dev/null) || die "compose.yaml and .env do not fit together. $problem"
}

# take_turn: ends the script when another script that changes the deployment is running.
take_turn() {
  command -v flock >/dev/null || return 0
  # The kernel releases the lock when this process ends.
  exec 9<compose.yaml
  flock --nonblock 9 || die 'another script of deploy/ is running.'
}

# require_audit_folder: ends the script when the audit of removed containers could not be kept.
require_audit_folder() {
  [[ -d $AUDIT ]] || mkdir -m 700 -- "$AUDIT" 2>/dev/null || die "the folder $PWD/$AUDIT cannot be created."
  [[ -w $AUDIT ]] || die "the folder $PWD/$AUDIT cannot be written."
}

# keep_audit CONTAINER NAME: copies the audit lines of the container's log to a new file in $AUDIT, because
# Docker deletes the log together with the container. NAME becomes part of the name of the file. Fails when
# the log cannot be read or the file cannot be written.
keep_audit() {
  local driver file part=$AUDIT/.part
  # An earlier file of the same container stays, because it may have lines that Docker has deleted since.
  file=$AUDIT/$2-${1:0:12}-$(date +%Y%m%d%H%M%S).jsonl
  driver=$(docker inspect --format '{{.HostConfig.LogConfig.Type}}' "$1") || return 1
  # The other drivers send the lines to a place that Docker does not delete.
  [[ $driver == json-file || $driver == local ]] || return 0

  if docker logs "$1" 2>/dev/null | { grep '"level":35,' || (($? == 1)); } >"$part" \
    && chmod 600 -- "$part" && mv -- "$part" "$file"; then
    [[ -s $file ]] || rm -- "$file"
  else
    rm -f -- "$part"
    return 1
  fi
}

# keep_audit_of REPLICA: calls keep_audit for each container of the replica, also for stopped ones.
keep_audit_of() {
  local ids id
  ids=$(compose ps --all --quiet "$1") || return 1
  for id in $ids; do
    keep_audit "$id" "$1" || return 1
  done
}

# require_database: ends the script when the database does not answer.
require_database() {
  in_database pg_isready --quiet --host=127.0.0.1 --username=llavero </dev/null 2>/dev/null \
    || die 'the database does not answer: docker compose up --detach db'
}

# in_database COMMAND...: runs a command in the container of the database.
in_database() { compose exec -T -e PGAPPNAME="$SESSION" db "$@"; }

# end_statements: ends the statements of this script that are still running in the database. When the script
# is interrupted, a command in the container continues.
end_statements() {
  query postgres "select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where application_name = '$SESSION' and pid <> pg_backend_pid()" >/dev/null 2>&1
}

# query DATABASE SQL: executes a statement and prints its rows, one per line.
query() {
  in_database psql --username=llavero --dbname="$1" --no-psqlrc --quiet --tuples-only --no-align \
    --set=ON_ERROR_STOP=1 --command="$2" </dev/null
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

# require_replicas: ends the script when a replica is not ready.
require_replicas() {
  local replica
  for replica in "${REPLICAS[@]}"; do
    is_ready "$replica" || die "$replica does not serve. Fix that first: deploy/replace"
  done
}

# wait_until_ready REPLICA: fails after PATIENCE seconds and prints the last lines of the replica's log.
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

# replace_replica REPLICA: stops the replica and keeps its audit. Then creates its container again from the
# image, compose.yaml and .env, and waits until it is ready. Fails when it does not become ready.
replace_replica() {
  say "Replacing $1."
  if ! compose stop "$1" >/dev/null 2>"$notes"; then
    cat -- "$notes" >&2
    return 1
  fi
  if ! keep_audit_of "$1" 2>"$notes"; then
    cat -- "$notes" >&2
    say "The audit of $1 could not be copied to $PWD/$AUDIT, so $1 is not replaced but started again." >&2
    compose start "$1" >/dev/null 2>&1 || say "$1 could not be started: docker compose start $1" >&2
    return 1
  fi
  if ! compose up --detach --no-deps --force-recreate "$1" >/dev/null 2>"$notes"; then
    cat -- "$notes" >&2
    return 1
  fi
  wait_until_ready "$1" || return 1
  # The proxy needs the other replica until its health check has found this one ready.
  sleep 2
}

# replace_all: replaces the replicas one after the other, beginning with those that are not ready.
# Fails at the first one that does not become ready, and does not replace the remaining ones.
# While it works, and after it has failed, the variable `replacing` is set.
replacing=
replace_all() {
  local replica ready=() broken=()
  replacing=true
  for replica in "${REPLICAS[@]}"; do
    if is_ready "$replica"; then ready+=("$replica"); else broken+=("$replica"); fi
  done
  for replica in "${broken[@]}" "${ready[@]}"; do
    replace_replica "$replica" || return 1
  done
  replacing=
}

# say_who_serves: prints for each replica whether it is ready, unless replace_all has not begun or has
# succeeded.
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

# A temporary file for the output of commands; `failed` prints it.
notes=$(mktemp "${TMPDIR:-/tmp}/llavero.XXXXXX")

# `at_end` is called with the exit status when the script ends. A script may define it again.
at_end() { :; }
# A signal may come while the output of a function goes elsewhere, so `finish` needs the script's own.
exec 7>&1 8>&2
finish() {
  local status=$?
  exec >&7 2>&8
  # Neither another signal nor a terminal that is gone may keep `at_end` from undoing changes.
  trap '' HUP INT PIPE TERM
  set +e
  at_end "$status"
  rm -f -- "$notes"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# --- The keys in .env ------------------------------------------------------------------------------

# require_keys: ends the script when it cannot change the keys in .env, or when a variable of the shell
# would override them.
require_keys() {
  [[ -z ${JWT_SECRET+set}${JWT_SECRET_PREVIOUS+set} ]] \
    || die 'JWT_SECRET or JWT_SECRET_PREVIOUS is set in this shell and overrides .env: unset it.'
  [[ -w .env && -w $(dirname -- "$(readlink -f .env)") ]] || die "$PWD/.env cannot be written."
  [[ $(key JWT_SECRET) ]] || die 'JWT_SECRET is not in .env.'
}

# key NAME: prints the value of a variable in .env, or nothing when it is not set.
key() { sed -n "s/^$1=//p" .env | tail -n 1; }

# new_key: prints 64 random hexadecimal digits.
new_key() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# write_keys SECRET PREVIOUS: writes both keys into .env in one step. If PREVIOUS is empty, its line becomes
# a comment. If it fails, .env is as it was.
write_keys() {
  local file
  file=$(readlink -f .env)
  if new_env "$file" "$1" "$2" && mv -- "$file.new" "$file"; then return 0; fi
  rm -f -- "$file.new"
  return 1
}

# new_env FILE SECRET PREVIOUS: writes a copy of FILE with both keys to FILE.new.
new_env() {
  # Copying first keeps the owner and the mode of the file.
  cp -p -- "$1" "$1.new" || return 1
  SECRET=$2 PREVIOUS=$3 awk '
    BEGIN { previous = (ENVIRON["PREVIOUS"] == "" ? "#" : "") "JWT_SECRET_PREVIOUS=" ENVIRON["PREVIOUS"] }
    /^JWT_SECRET=/ { print "JWT_SECRET=" ENVIRON["SECRET"]; next }
    /^#?JWT_SECRET_PREVIOUS=/ { if (!written++) print previous; next }
    { print }
    END { if (!written) print previous }
  ' "$1" >"$1.new"
}
