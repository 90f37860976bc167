import type { Model } from "../model.ts";
import { curlEffects } from "./curl-files.ts";

const FLAGS = `-aqfgGIi0k46jlLMnNZpJORsS231vB -: -# --anyauth --append --basic --ca-native --cert-status --compressed
  --compressed-ssh --create-dirs --crlf --digest --disable --disable-eprt --disable-epsv --disallow-username-in-url
  --doh-cert-status --doh-insecure --fail --fail-early --fail-with-body --false-start --form-escape --ftp-create-dirs
  --ftp-pasv --ftp-pret --ftp-skip-pasv-ip --ftp-ssl-ccc --ftp-ssl-control --get --globoff --haproxy-protocol --head
  --http0.9 --http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --http3-only --ignore-content-length --include
  --insecure --ipv4 --ipv6 --junk-session-cookies --list-only --location --location-trusted --mail-rcpt-allowfails
  --manual --metalink --negotiate --netrc --netrc-optional --next --no-alpn --no-buffer --no-clobber --no-fail
  --no-keepalive --no-location --no-npn --no-progress-meter --no-sessionid --no-silent --no-verbose --ntlm --ntlm-wb
  --parallel --parallel-immediate --path-as-is --post301 --post302 --post303 --progress-bar --progress-meter
  --proxy-anyauth --proxy-basic --proxy-digest --proxy-http2 --proxy-insecure --proxy-negotiate --proxy-ntlm
  --proxy-ssl-allow-beast --proxy-ssl-auto-client-cert --proxy-tlsv1 --proxytunnel --raw --remote-header-name
  --remote-name --remote-name-all --remote-time --remove-on-error --retry-all-errors --retry-connrefused --sasl-ir
  --show-error --show-headers --silent --socks5-basic --socks5-gssapi --socks5-gssapi-nec --ssl --ssl-allow-beast
  --ssl-auto-client-cert --ssl-no-revoke --ssl-reqd --ssl-revoke-best-effort --sslv2 --sslv3 --styled-output
  --suppress-connect-headers --tcp-fastopen --tcp-nodelay --tftp-no-options --tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2
  --tlsv1.3 --tr-encoding --trace-ids --trace-time --use-ascii --verbose --xattr`;

/** Said to the other side, or about the connection. What begins with @ is looked at apart. */
const VALUES = `-C: -b: -d: -F: -P: -H: -m: -U: -Q: -r: -e: -X: -Y: -y: -t: -z: -u: -A: -w: -h: --help= --aws-sigv4=
  --cert-type= --ciphers= --connect-timeout= --connect-to= --continue-at= --cookie= --create-file-mode= --curves=
  --data= --data-ascii= --data-binary= --data-raw= --data-urlencode= --delegation= --dns-interface= --dns-ipv4-addr=
  --dns-ipv6-addr= --expect100-timeout= --form= --form-string= --ftp-account= --ftp-alternative-to-user= --ftp-method=
  --ftp-port= --ftp-ssl-ccc-mode= --happy-eyeballs-timeout-ms= --haproxy-clientip= --header= --hostpubmd5=
  --hostpubsha256= --interface= --ipfs-gateway=host --json= --keepalive-time= --key-type= --krb= --limit-rate=
  --local-port= --login-options= --mail-auth= --mail-from= --mail-rcpt= --max-filesize= --max-redirs= --max-time=
  --noproxy= --oauth2-bearer= --parallel-max= --pass= --pinnedpubkey= --proto= --proto-default= --proto-redir=
  --proxy-cert-type= --proxy-ciphers= --proxy-header= --proxy-key-type= --proxy-pass= --proxy-pinnedpubkey=
  --proxy-service-name= --proxy-tls13-ciphers= --proxy-tlsauthtype= --proxy-tlspassword= --proxy-tlsuser= --proxy-user=
  --quote= --range= --rate= --referer= --request= --request-target= --resolve= --retry= --retry-delay=
  --retry-max-time= --sasl-authzid= --service-name= --socks5-gssapi-service= --speed-limit= --speed-time=
  --telnet-option= --tftp-blksize= --time-cond= --tls-max= --tls13-ciphers= --tlsauthtype= --tlspassword= --tlsuser=
  --url-query= --user= --user-agent= --variable= --write-out=`;

const FILES = `-E:read --cert=read --cacert=read --capath=read --crlfile=read --key=read --pubkey=read --netrc-file=read
  --etag-compare=read --proxy-cacert=read --proxy-capath=read --proxy-cert=read --proxy-crlfile=read --proxy-key=read
  --egd-file=read --random-file=read -T:read --upload-file=read
  -o:write --output=write -D:write --dump-header=write -c:write --cookie-jar=write --trace=write --trace-ascii=write
  --stderr=write --libcurl=write --etag-save=write --hsts=write --alt-svc=write --output-dir=target
  -K:loads --config=loads --engine=loads`;

const HOSTS = `--url=host -x:host --proxy=host --preproxy=host --proxy1.0=host --socks4=host --socks4a=host --socks5=host
  --socks5-hostname=host --dns-servers=host --doh-url=host`;

/** A socket of this machine: what listens there is not known. */
const SOCKETS = "--unix-socket=write --abstract-unix-socket=";

export const CURL: Readonly<Record<string, Model>> = {
  curl: {
    options: `${FLAGS} ${VALUES} ${FILES} ${HOSTS} ${SOCKETS}`,
    operands: "host*",
    abbreviates: true,
    tells: "--version --help -V -h --manual -M",
    also: curlEffects,
  },
};
