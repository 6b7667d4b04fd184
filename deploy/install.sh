#!/usr/bin/env bash
# Installs the server, or upgrades it in place; `deploy/install.sh --help` says how.
set -euo pipefail
umask 022

source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$source_folder/deploy

usage() {
    cat << 'END'
Usage: deploy/install.sh [OPTION]...

Installs the Earshot server from this folder, or upgrades it, and shows that it starts. As root it
is a system service with its own account, otherwise a service of your user.

                  as root                    otherwise
  --prefix DIR    /opt/earshot               ~/.local/share/earshot     programs and settings
  --data DIR      /var/lib/earshot           ~/.local/state/earshot     credentials and database
  --units DIR     /etc/systemd/system        ~/.config/systemd/user     where systemd's unit goes
  --user NAME     earshot                    -                          runs it; made if missing
  --wheel FILE    install this wheel instead of building one from this folder
  --python FILE   the Python to use, 3.11 or later
  --no-service    do not touch systemd: no unit is written

Packages come in the exact versions of deploy/requirements.lock, from wherever pip is configured to
look (PIP_INDEX_URL, PIP_FIND_LINKS, PIP_NO_INDEX). Data and settings are never overwritten.
END
}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

say() {
    echo "$*" >&2
}

# ------------------------------------------------------------------------------------- options

if [ "$(id -u)" -eq 0 ]; then
    prefix=/opt/earshot data=/var/lib/earshot units=/etc/systemd/system account=earshot
    systemctl=(systemctl)
else
    prefix=${XDG_DATA_HOME:-$HOME/.local/share}/earshot
    data=${XDG_STATE_HOME:-$HOME/.local/state}/earshot
    units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
    account=''
    systemctl=(systemctl --user)
fi
own_units=$units wheel='' python='' service=yes

while [ $# -gt 0 ]; do
    case $1 in
        --help | -h)
            usage
            exit 0
            ;;
        --no-service) service=no ;;
        --prefix | --data | --units | --user | --wheel | --python)
            [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value"
            case $1 in
                --prefix) prefix=$(realpath -m -- "$2") ;;
                --data) data=$(realpath -m -- "$2") ;;
                --units) units=$(realpath -m -- "$2") ;;
                --user) account=$2 ;;
                --wheel) wheel=$(realpath -e -- "$2") ;;
                --python) python=$2 ;;
            esac
            shift
            ;;
        *) fail "unknown option $1; --help lists them" ;;
    esac
    shift
done
[ "$(id -u)" -eq 0 ] || [ -z "$account" ] || fail "--user is for root: you install for yourself"
for folder in "$prefix" "$data" "$units"; do
    # systemd, shell and sed read these names, and quote differently.
    [[ $folder =~ ^/[A-Za-z0-9_./+:@-]+$ ]] \
        || fail "$folder: choose a path of letters, digits and . _ + : @ -"
done

# ------------------------------------------------------------------------------------- account

as_service() { # run a command as the account of the server
    if [ -z "$account" ]; then
        (cd / && "$@")
    else
        (cd / && setpriv --reuid="$account" --regid="$(id -g "$account")" --init-groups -- \
            env HOME="$data" "$@")
    fi
}

if [ -n "$account" ] && ! id "$account" > /dev/null 2>&1; then
    useradd --system --user-group --home-dir "$data" --no-create-home \
        --shell /usr/sbin/nologin "$account"
fi

# -------------------------------------------------------------------------------------- python

suitable() { # a Python that the service's account can run, new enough, able to make environments
    as_service "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
        > /dev/null 2>&1
}

if [ -n "$python" ]; then
    suitable "$python" || fail "$python is not a Python 3.11 or later with venv that ${account:-you} can run"
else
    for name in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3 /usr/local/bin/python3; do
        found=$(command -v "$name") && suitable "$found" && python=$found && break
    done
    [ -n "$python" ] || fail "there is no Python 3.11 or later with venv that ${account:-you} can" \
        "run: install one (Debian: apt-get install python3 python3-venv), or name it with --python"
fi

# ------------------------------------------------------------------------------------ packages

# A failed upgrade restores the former programs, and restarts the service if it ran.
running=no kept='' building=''
finish() {
    if [ -n "$kept" ]; then
        rm -rf "$prefix/venv"
        mv "$kept" "$prefix/venv"
        say "the former programs were restored"
    fi
    rm -rf "$building" "$prefix/venv.before"
    [ "$running" = yes ] || return 0
    if "${systemctl[@]}" start earshot.service; then
        say "the service was started again"
    else
        say "the service is stopped, and does not start again: ${systemctl[*]} status earshot"
    fi
}
trap finish EXIT

if [ "$service" = yes ] && [ "$units" = "$own_units" ] \
    && "${systemctl[@]}" is-active --quiet earshot.service 2> /dev/null; then
    say "stopping the service for the upgrade …"
    "${systemctl[@]}" stop earshot.service
    running=yes
fi

say "installing into $prefix …"
mkdir -p "$prefix/bin"
if "$prefix/venv/bin/python" -c '' 2> /dev/null; then
    rm -rf "$prefix/venv.before"
    cp -a "$prefix/venv" "$prefix/venv.before"
    kept=$prefix/venv.before
else
    "$python" -m venv --clear "$prefix/venv"
fi
pip=("$prefix/venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install --require-hashes -r "$here/requirements.lock"
if [ -z "$wheel" ]; then
    # From a copy, since building writes into the folder it is in.
    building=$(mktemp -d)
    cp -R "$source_folder"/{pyproject.toml,README.md,LICENSE,NOTICE,protocol,client,server,models,simulations} \
        "$building"
    "${pip[@]}" wheel --no-deps --no-build-isolation --wheel-dir "$building/wheel" "$building"
    wheel=$(echo "$building"/wheel/*.whl)
fi
"${pip[@]}" install --no-deps --force-reinstall "$wheel"
ln -sfn ../venv/bin/earshot "$prefix/bin/earshot"

# ------------------------------------------------------------------------------- data, settings

if [ ! -d "$data" ]; then
    mkdir -p "$(dirname "$data")"
    mkdir -m 0700 "$data"
fi
[ -z "$account" ] || chown "$account:" "$data"
chmod 0700 "$data"

settings=$prefix/environment
if [ ! -e "$settings" ]; then
    (umask 077 && cat > "$settings") << 'END'
# Settings of the server, read when it starts. A PostgreSQL instead of the embedded one:
#EARSHOT_DATABASE=postgresql://earshot:password@db.example/earshot
#EARSHOT_WEB_DATABASE=postgresql://earshot_web:another-password@db.example/earshot
#EARSHOT_DRIVER_DATABASE=postgresql://earshot_driver:a-third-password@db.example/earshot
# More options of `earshot serve`:
#EARSHOT_OPTIONS=--port 8000 --proxies 1
END
fi

# --------------------------------------------------------------------------------- does it start?

attempt=$(as_service mktemp -d)
say "starting it once, with a temporary database …"
# Without the settings of the real server.
if ! as_service env -u EARSHOT_DATABASE -u EARSHOT_WEB_DATABASE -u EARSHOT_DRIVER_DATABASE \
    "$prefix/venv/bin/python" - "$attempt" \
    < "$here/attempt.py"; then
    as_service tail -n 5 "$attempt/log" >&2 || true
    as_service rm -rf "$attempt"
    fail "the server that was installed does not start"
fi
as_service rm -rf "$attempt"
kept=''

# ---------------------------------------------------------------------------------------- service

if [ "$service" = yes ]; then
    mkdir -p "$units"
    fill=(-e "s|@PREFIX@|$prefix|g" -e "s|@DATA@|$data|g" -e "s|@USER@|$account|g")
    if [ -n "$account" ]; then
        fill+=(-e 's|^#system ||' -e 's|@TARGET@|multi-user.target|')
    else
        fill+=(-e '/^#system /d' -e 's|@TARGET@|default.target|')
    fi
    sed "${fill[@]}" "$here/earshot.service" > "$units/earshot.service"
fi

say "installed: $("$prefix/bin/earshot" --version)"
# Without a systemd that answers, the server is started by hand.
if [ "$service" = yes ] && [ "$units" = "$own_units" ] \
    && "${systemctl[@]}" daemon-reload 2> /dev/null; then
    "${systemctl[@]}" enable --quiet earshot.service
    [ "$running" = no ] || "${systemctl[@]}" start earshot.service
    running=no
    say "start it with:  ${systemctl[*]} start earshot"
    [ -n "$account" ] || say "to let it run while you are logged out:  loginctl enable-linger"
else
    became=${account:+setpriv --reuid=$account --regid=$account --init-groups }
    say "start it with:  $became$prefix/bin/earshot serve --data $data"
fi
# Where the last start listened; at first, the default.
url=$(as_service "$prefix/venv/bin/python" -c '
import pathlib, sys
from earshot_server.processes.address import remembered
print(remembered(pathlib.Path(sys.argv[1])).reachable.url)
' "$data")
say "then sign in at $url with the token in $data/operator.token"
