#!/usr/bin/env bash
# Sets up and starts Temporal's own server for a team: PostgreSQL, TLS with client certificates of
# the team's CA, and tokens for the authorizer.
#
#   team.sh init HOST               make databases, certificates and keys; HOST is the name or
#                                   address that clients connect to. Run again, it upgrades the
#                                   databases' schema and renews the server's certificate
#   team.sh start                   start the server
#   team.sh client NAME             make a client's certificate, clients/NAME.pem and NAME.key
#   team.sh token NAME PERMISSION.. print a token, for TEMPORAL_API_KEY. A permission is
#                                   NAMESPACE:read, NAMESPACE:write (workers need it) or
#                                   NAMESPACE:admin; the namespace temporal-system means all
#   team.sh revoke NAME             make NAME's tokens invalid
#
#   COVEN_TEMPORAL_DIR     directory of certificates and keys (default ~/.local/state/coven/team)
#   COVEN_TEMPORAL_DAYS    validity of a certificate or token (default 365)
#   COVEN_TEMPORAL_SERVER, COVEN_TEMPORAL_SQL   programs (default: those that .ci/temporal has built)
#   PGHOST, PGPORT, PGUSER, PGPASSWORD, PGSSLMODE and COVEN_TEMPORAL_{LISTEN,PORT,AUTHORIZER}:
#   see team.yaml
set -euo pipefail
umask 077
here=$(cd "$(dirname "$0")" && pwd)
dir=${COVEN_TEMPORAL_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/coven/team}
days=${COVEN_TEMPORAL_DAYS:-365}
export PGHOST=${PGHOST:-/run/postgresql} PGPORT=${PGPORT:-5432} PGUSER=${PGUSER:-temporal}
mkdir -p "$dir/clients" "$dir/keys"
dir=$(cd "$dir" && pwd)

die() { echo "team.sh: $*" >&2; exit 1; }
name() { [[ ${1-} =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || die "invalid name: ${1-}"; }

# certificate FILE SUBJECT OPTION... writes FILE.pem and FILE.key. A file is replaced only by a
# complete one. openssl's own configuration would make every certificate one of a CA.
certificate() {
	local file=$1 subject=$2
	shift 2
	openssl req -x509 -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') -subj "/CN=$subject" \
		-newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -keyout "$file.key.new" -out "$file.pem.new" \
		-days "$days" "$@" 2>/dev/null || die "openssl (3.0 or later) cannot make $file.pem"
	mv "$file.key.new" "$file.key"
	mv "$file.pem.new" "$file.pem"
}

# signed FILE SUBJECT USAGE OPTION... is a certificate of the team's CA.
signed() {
	certificate "$1" "$2" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -addext basicConstraints=critical,CA:FALSE \
		-addext keyUsage=critical,digitalSignature -addext "extendedKeyUsage=$3" "${@:4}"
}

sql() { # DATABASE COMMAND...
	local ssl=verify-full
	if [[ $PGHOST == /* ]]; then ssl=disable; fi
	SQL_PASSWORD=${PGPASSWORD-} "${COVEN_TEMPORAL_SQL:-$here/../../.tools/temporal/sql}" \
		--plugin postgres12_pgx --endpoint localhost --port "$PGPORT" --user "$PGUSER" \
		--connect-attributes "host=$PGHOST&sslmode=${PGSSLMODE:-$ssl}" --database "$@" >>"$dir/sql.log" 2>&1 ||
		die "Temporal's SQL tool failed, see $dir/sql.log"
}

database() { # DATABASE SCHEMA
	local version
	sql "$1" create-database
	version=$(psql -XAtd "$1" -c "select to_regclass('schema_version')")
	if [ -z "$version" ]; then sql "$1" setup-schema --version 0.0; fi
	sql "$1" update-schema --schema-name "postgresql/v12/$2"
}

init() { # HOST
	[ $# = 1 ] || die "usage: team.sh init HOST"
	local san=DNS:$1
	if [[ $1 =~ ^[0-9.]+$ || $1 == *:* ]]; then san=IP:$1; fi
	database temporal temporal
	database temporal_visibility visibility
	if [ ! -e "$dir/ca.pem" ]; then
		days=3650 certificate "$dir/ca" "coven team CA" -addext basicConstraints=critical,CA:TRUE,pathlen:0 \
			-addext keyUsage=critical,keyCertSign
	fi
	signed "$dir/server" "$1" serverAuth -addext "subjectAltName=$san,DNS:localhost,IP:127.0.0.1"
	if [ ! -e "$dir/internode.pem" ]; then
		days=3650 certificate "$dir/internode" internode -addext subjectAltName=DNS:internode
	fi
	keys
}

# keys writes the public keys of all valid tokens for the server.
keys() {
	local all
	all=$(cat "$dir"/keys/*.json 2>/dev/null | paste -sd, - || true)
	echo "{\"keys\":[$all]}" >"$dir/keys.json.new"
	mv "$dir/keys.json.new" "$dir/keys.json"
}

base64url() { basenc --base64url -w0 | tr -d '='; }

# token has a key of its own, which is forgotten: only its public half remains, until it is revoked.
token() { # NAME PERMISSION...
	name "${1-}"
	local who=$1 key id head body permissions now
	shift
	[ $# -gt 0 ] || die "usage: team.sh token NAME PERMISSION..."
	for p in "$@"; do
		[[ $p =~ ^[A-Za-z0-9][A-Za-z0-9._-]*:(read|write|admin)$ ]] || die "invalid permission: $p"
	done
	key=$(openssl genrsa 2048 2>/dev/null)
	id=$who-$(openssl rand -hex 6)
	permissions=$(printf '"%s",' "$@")
	now=$(date +%s)
	printf '{"kty":"RSA","use":"sig","alg":"RS256","kid":"%s","e":"AQAB","n":"%s"}\n' "$id" \
		"$(openssl rsa -noout -modulus <<<"$key" | cut -d= -f2 | basenc --base16 -d | base64url)" >>"$dir/keys/$who.json"
	keys
	head=$(printf '{"alg":"RS256","typ":"JWT","kid":"%s"}' "$id" | base64url)
	body=$(printf '{"sub":"%s","permissions":[%s],"iat":%d,"exp":%d}' "$who" "${permissions%,}" "$now" $((now + days * 86400)) | base64url)
	echo "$head.$body.$(printf %s "$head.$body" | openssl dgst -sha256 -sign <(echo "$key") | base64url)"
}

case ${1-} in
init) init "${@:2}" ;;
client)
	name "${2-}"
	signed "$dir/clients/$2" "$2" clientAuth
	;;
token) token "${@:2}" ;;
revoke)
	name "${2-}"
	rm -f "$dir/keys/$2.json"
	keys
	;;
start)
	export COVEN_TEMPORAL_DIR=$dir COVEN_TEMPORAL_SETUP=$here
	set -- --config-file "$here/team.yaml"
	if [ "${COVEN_TEMPORAL_AUTHORIZER-}" = none ]; then set -- "$@" --allow-no-auth; fi
	# internal-frontend is not among the services that start by default.
	exec "${COVEN_TEMPORAL_SERVER:-$here/../../.tools/temporal/server}" "$@" start \
		--service frontend --service internal-frontend --service history --service matching --service worker
	;;
*)
	sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
