# Sourced by the scripts beside it: makes the project's virtual environment and finds its Python.
#
#   need_environment EXTRA...   creates or completes the environment, so that it holds the project
#                               with these extras; sets $root, $venv and $python
#
# MULTILANG_VENV     where the environment is (default: .venv in the project)
# MULTILANG_PYTHON   the Python to make it with (default: the first of python3, python3.14 ... that
#                    is 3.10 or newer)
# shellcheck shell=bash

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=${MULTILANG_VENV:-$root/.venv}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
python=$venv/bin/python
log=$venv/install.log

say() { printf '%s\n' "$*" >&2; }
die() {
    say "error: $1"
    shift
    for line in "$@"; do say "       $line"; done
    exit 69 # EX_UNAVAILABLE: the machine lacks something, no test has failed
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 </dev/null; }

find_python() {
    local candidate
    if [ -n "${MULTILANG_PYTHON:-}" ]; then
        new_enough "$MULTILANG_PYTHON" || die "MULTILANG_PYTHON=$MULTILANG_PYTHON is not a Python 3.10 or newer."
        printf '%s' "$MULTILANG_PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3 python; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    die "no Python 3.10 or newer was found (python3 is: $(python3 -V 2>&1 || true))." \
        "Install one (Debian, Ubuntu: apt-get install python3 python3-venv; macOS: brew install python)," \
        "or name one: MULTILANG_PYTHON=/path/to/python3 $0"
}

# Debian's packages, for whoever may install them.
apt_install() {
    say "Installing $* ..."
    {
        DEBIAN_FRONTEND=noninteractive apt-get update -q &&
            DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
    } </dev/null >>"$log" 2>&1
}
can_apt_install() { command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; }

# Debian's python3 comes without ensurepip: its venv module then only says what to install.
install_debian_venv() {
    local base=$1 package
    package=$("$base" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if ! command -v apt-get >/dev/null; then
        die "$base can't make virtual environments: its modules venv and ensurepip are missing." \
            "Install them (the package is often called python3-venv), or name another Python: MULTILANG_PYTHON=..."
    elif ! can_apt_install; then
        die "$base can't make virtual environments: its modules venv and ensurepip are missing." \
            "Install them:  sudo apt-get install $package"
    fi
    apt_install "$package" || failed "apt-get could not install $package"
}

failed() {
    local hint=""
    tail -n 15 "$log" >&2
    if grep -qiE 'resolve|connection|unreachable|timed out|proxy|could not find a version|failed to fetch' "$log"; then
        hint="It looks as if there is no network; where a proxy or mirror is needed, tell pip (PIP_PROXY, PIP_INDEX_URL)."
    fi
    die "$1; the whole output is in $log." ${hint:+"$hint"} "Then run it again: it goes on from here."
}

make_venv() {
    local base
    base=$(find_python) || exit
    mkdir -p "$venv" || die "can't create $venv" "Choose another place: MULTILANG_VENV=/some/folder $0"
    : >"$log" || die "can't write in $venv" "Choose another place: MULTILANG_VENV=/some/folder $0"
    "$base" -c 'import venv, ensurepip' </dev/null >/dev/null 2>&1 || install_debian_venv "$base"
    say "Making the environment $venv with $("$base" -V 2>&1) ..."
    # What is left of an older or broken environment goes; a folder that is none keeps its files.
    if [ -f "$venv/pyvenv.cfg" ]; then rm -rf "${venv:?}/bin" "${venv:?}/lib" "${venv:?}/pyvenv.cfg"; fi
    "$base" -m venv "$venv" </dev/null >>"$log" 2>&1 || failed "$base -m venv did not work"
}

# What was installed: the project's declaration and place on line 1, the extras on line 2.
fingerprint() { printf '%s %s' "$(cksum <"$root/pyproject.toml")" "$root"; }

# uv installs in seconds what pip takes minutes for on a slow machine. Where it can't be had, or does not succeed, pip does it.
install() {
    local compiled=()
    # Python compiles a module when it is first imported, unless that is forbidden.
    if [ -n "${PYTHONDONTWRITEBYTECODE:-}" ]; then compiled=(--compile-bytecode); fi
    if [ -z "${installer:-}" ]; then
        if has_uv; then installer=uv; else installer=pip; fi
    fi
    if [ "$installer" = uv ] && "$venv/bin/uv" pip install --quiet --python "$python" ${compiled[@]+"${compiled[@]}"} "$@" </dev/null >>"$log" 2>&1; then
        return
    fi
    "$python" -m pip install --disable-pip-version-check --no-input "$@" </dev/null >>"$log" 2>&1
}

# Installs uv itself, in CI the one in the lock, and tells it pip's settings, which it does not read. With a setting of
# another meaning, or where uv can't be installed, pip is left to do all.
has_uv() {
    local name value
    while IFS='=' read -r name value; do
        value=${value#\'} value=${value%\'}
        case ${name##*.} in
            index-url) export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$value}" ;;
            find-links) export UV_FIND_LINKS="${UV_FIND_LINKS:-$value}" ;;
            cert) export SSL_CERT_FILE="${SSL_CERT_FILE:-$value}" ;;
            timeout | default-timeout) export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-$value}" ;;
            constraint) [ "$value" = "$venv/build.txt" ] || return 1 ;; # it has UV_BUILD_CONSTRAINT
            config-file | build-constraint | no-build-isolation | disable-pip-version-check | no-input | no-color | progress-bar | quiet | verbose | cache-dir | no-cache-dir | root-user-action | '') ;;
            *) return 1 ;;
        esac
    done <<<"$("$python" -m pip config list 2>/dev/null </dev/null)"
    [ -x "$venv/bin/uv" ] && return
    local wanted=(uv)
    if [ -n "${CI:-}" ]; then
        sed -n '/^uv==/,/[^\\]$/p' "$root/scripts/lock.txt" >"$venv/uv.txt"
        wanted=(--no-deps --require-hashes -r "$venv/uv.txt")
    fi
    "$python" -m pip install --disable-pip-version-check --no-input "${wanted[@]}" </dev/null >>"$log" 2>&1
}

# What is built, here and in the tests, is built by the setuptools in the lock: pip takes one anew for each build. A new pip
# takes PIP_BUILD_CONSTRAINT for that, and one before 25.3 PIP_CONSTRAINT.
pin_build() {
    mkdir -p "$venv" || die "can't create $venv" "Choose another place: MULTILANG_VENV=/some/folder $0"
    sed -n 's/^\(setuptools==[^ ]*\) .*/\1/p' "$root/scripts/lock.txt" >"$venv/build.txt.$$"
    mv "$venv/build.txt.$$" "$venv/build.txt" # at once, as another script's pip may read it
    export UV_BUILD_CONSTRAINT=$venv/build.txt PIP_BUILD_CONSTRAINT=$venv/build.txt PIP_CONSTRAINT=$venv/build.txt
}

need_environment() {
    [ -z "${CI:-}" ] || pin_build
    local stamp=$venv/multilang-installed known="" wanted extra missing=""
    if [ -x "$python" ] && new_enough "$python" && [ -f "$stamp" ]; then
        known=" $(sed -n 2p "$stamp") "
        [ "$(sed -n 1p "$stamp")" = "$(fingerprint)" ] || missing=yes
    else
        missing=yes
    fi
    for extra in "$@"; do
        case $known in *" $extra "*) ;; *) missing=yes ;; esac
    done
    [ -n "$missing" ] || return 0

    mkdir -p "$venv" || die "can't create $venv" "Choose another place: MULTILANG_VENV=/some/folder $0"
    if command -v flock >/dev/null && [ -z "${MULTILANG_SETUP_LOCKED:-}" ]; then
        # Two scripts started at once: the second waits, then finds everything done.
        exec 9>"$venv/setup.lock"
        flock 9
        MULTILANG_SETUP_LOCKED=1 need_environment "$@"
        exec 9>&-
        return
    fi
    { [ -x "$python" ] && new_enough "$python" && "$python" -m pip --version >/dev/null 2>&1 </dev/null; } || make_venv
    wanted=$(printf '%s\n' $known "$@" | sort -u | paste -sd ' ' -)
    say "Installing storm-multilang with: $wanted (some seconds to a few minutes) ..."
    rm -f "$stamp"
    : >"$log"
    if [ -n "${CI:-}" ]; then
        # In CI, what was looked at and nothing else, by the hashes of its files (scripts/lock).
        install --no-deps --require-hashes -r "$root/scripts/lock.txt" || failed "scripts/lock.txt could not be installed"
    fi
    install -e "$root[${wanted// /,}]" || failed "the project could not be installed"
    printf '%s\n%s\n' "$(fingerprint)" "$wanted" >"$stamp"
}
