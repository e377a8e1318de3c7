# shellcheck shell=bash
#
# What the scripts of this folder have in common. Each script sources it first: it goes to the folder of
# compose.yaml and stops the script at the first command that fails.

set -euo pipefail

script=deploy/$(basename -- "$0")
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

readonly REPLICAS=(app1 app2)
# How long a replica may take until it is ready, in seconds.
readonly PATIENCE=${LLAVERO_WAIT:-60}

# say TEXT...: tells the operator what is being done.
say() { printf '%s\n' "$*"; }

# die SENTENCE: ends the script with a failure.
die() {
  printf '%s: %s\n' "$script" "$*" >&2
  exit 1
}

# failed SENTENCE: as `die`, after what the last command has written to $notes.
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

# wrong_use [ARGUMENT]: ends the script because of its arguments.
wrong_use() {
  if (($#)); then printf '%s: %s is not understood.\n' "$script" "$1" >&2; fi
  printf 'See %s --help.\n' "$script" >&2
  exit 2
}

# compose ARGUMENT...: Docker Compose, the plugin or the program of that name.
compose() {
  if docker compose version >/dev/null 2>&1; then
    docker compose "$@"
  else
    docker-compose "$@"
  fi
}

# require_deployment: ends the script where it could not work with the containers of compose.yaml.
require_deployment() {
  local said
  command -v docker >/dev/null || die 'docker is not installed.'
  docker version >/dev/null 2>&1 || die 'the Docker engine does not answer.'
  docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null \
    || die 'Docker Compose is not installed.'
  [[ -f .env ]] || die "there is no $PWD/.env: copy .env.example and fill it in."
  said=$(compose config 2>&1 >/dev/null) || die "compose.yaml and .env do not fit together. $said"
}

# take_turn: ends the script where another one that changes the deployment is running.
take_turn() {
  command -v flock >/dev/null || return 0
  # The lock ends with this process.
  exec 9<compose.yaml
  flock --nonblock 9 || die 'another script of deploy/ is running.'
}

# require_database: ends the script where the database does not answer.
require_database() {
  in_database pg_isready --quiet --host=127.0.0.1 --username=llavero </dev/null 2>/dev/null \
    || die 'the database does not answer: docker compose up --detach db'
}

# in_database COMMAND...: runs it in the container of the database.
in_database() { compose exec -T db "$@"; }

# query DATABASE SQL: the rows, one a line.
query() {
  in_database psql --username=llavero --dbname="$1" --no-psqlrc --quiet --tuples-only --no-align \
    --set=ON_ERROR_STOP=1 --command="$2" </dev/null
}

# is_ready REPLICA: whether the replica answers that it can serve.
is_ready() {
  local id
  id=$(compose ps --quiet "$1" 2>/dev/null) || return 1
  # shellcheck disable=SC2016 # Node expands it.
  [[ $id ]] && docker exec "$id" node -e '
    fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/ready`, { signal: AbortSignal.timeout(4000) })
      .then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))
  ' >/dev/null 2>&1
}

# require_replicas: ends the script where a replica does not serve already.
require_replicas() {
  local replica
  for replica in "${REPLICAS[@]}"; do
    is_ready "$replica" || die "$replica does not serve. Mend that first: deploy/replace"
  done
}

# wait_until_ready REPLICA: fails after PATIENCE, with the last lines of the replica's log.
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

# replace_replica REPLICA: makes its container anew from the image, compose.yaml and .env.
replace_replica() {
  say "Replacing $1."
  if ! compose up --detach --no-deps --force-recreate "$1" >/dev/null 2>"$notes"; then
    cat -- "$notes" >&2
    return 1
  fi
  wait_until_ready "$1" || return 1
  # Until the proxy has seen that this replica is ready, it needs the other one.
  sleep 2
}

# replace_all: replaces the replicas one after the other, those that are not ready first.
# Fails at the first one that does not become ready, and leaves the others as they are.
replace_all() {
  local replica ready=() broken=()
  for replica in "${REPLICAS[@]}"; do
    if is_ready "$replica"; then ready+=("$replica"); else broken+=("$replica"); fi
  done
  for replica in "${broken[@]}" "${ready[@]}"; do
    if ! replace_replica "$replica"; then
      say_who_serves >&2
      return 1
    fi
  done
}

say_who_serves() {
  local replica
  for replica in "${REPLICAS[@]}"; do
    if is_ready "$replica"; then say "$replica is ready and serves."; else say "$replica does not serve."; fi
  done
}

# A file for what commands say, which is shown when they fail.
notes=$(mktemp "${TMPDIR:-/tmp}/llavero.XXXXXX")

# At the end of a script `at_end`, a function that the script may define, gets the exit status.
at_end() { :; }
finish() {
  local status=$?
  at_end "$status"
  rm -f -- "$notes"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- The keys in .env ------------------------------------------------------------------------------

# require_keys: ends the script where the keys in .env cannot be changed, or would not be used.
require_keys() {
  [[ -z ${JWT_SECRET+set}${JWT_SECRET_PREVIOUS+set} ]] \
    || die 'JWT_SECRET or JWT_SECRET_PREVIOUS is set in this shell and overrides .env: unset it.'
  [[ -w .env && -w $(dirname -- "$(readlink -f .env)") ]] || die "$PWD/.env cannot be written."
  [[ $(key JWT_SECRET) ]] || die 'JWT_SECRET is not in .env.'
}

# key NAME: its value in .env; nothing where it is not set.
key() { sed -n "s/^$1=//p" .env | tail -n 1; }

# new_key: 64 random hexadecimal digits.
new_key() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# write_keys SECRET PREVIOUS: puts both into .env at once. With an empty PREVIOUS its line is a comment.
write_keys() {
  local file
  file=$(readlink -f .env)
  # The copy has the owner and the mode of the file.
  cp -p -- "$file" "$file.new" || return 1
  SECRET=$1 PREVIOUS=$2 awk '
    BEGIN { previous = (ENVIRON["PREVIOUS"] == "" ? "#" : "") "JWT_SECRET_PREVIOUS=" ENVIRON["PREVIOUS"] }
    /^JWT_SECRET=/ { print "JWT_SECRET=" ENVIRON["SECRET"]; next }
    /^#?JWT_SECRET_PREVIOUS=/ { if (!written++) print previous; next }
    { print }
    END { if (!written) print previous }
  ' "$file" >"$file.new" || return 1
  mv -- "$file.new" "$file"
}
