import { hostsOf } from "./argument-roles.ts";
import { given, part, reachesAnyway, reading, valuesOf, writing } from "./network-arguments.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

/** The last name in the path of an address; none where the other side chooses it. */
const NAME = /^[^/?#]+\/(?:[^?#]*\/)?([^/?#]+)/;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** Files that get the names which their addresses end with, in the folder or where the program works. */
export function downloads(use: Use, addresses: readonly Arg[], folder?: Arg): readonly Found[] {
  const here: Arg = folder ?? { kind: "literal", value: ".", span: use.span };
  const names = addresses.flatMap((address) => {
    const name = address.kind === "dynamic" ? undefined : NAME.exec(address.value.replace(SCHEME, ""))?.[1];
    return name === undefined
      ? []
      : [writing(part({ ...here, span: address.span }, `${here.value}/${name}`), use)];
  });
  return names.length === addresses.length && names.length > 0 ? names : [writing(here, use), ...names];
}

const WGET_FLAGS = `-bdqvFcNS46xErkKmpHL --background --debug --quiet --verbose --no-verbose --force-html --no-config
  --retry-connrefused --no-clobber --no-netrc --continue --show-progress --timestamping --no-if-modified-since
  --no-use-server-timestamps --server-response --spider --random-wait --no-proxy --no-dns-cache --ignore-case
  --inet4-only --inet6-only --ask-password --no-iri --unlink --xattr --no-directories --force-directories
  --no-host-directories --protocol-directories --no-cache --adjust-extension --ignore-length --save-headers
  --no-http-keep-alive --no-cookies --keep-session-cookies --content-disposition --content-on-error
  --auth-no-challenge --https-only --no-check-certificate --no-hsts --no-remove-listing --no-glob --no-passive-ftp
  --preserve-permissions --retr-symlinks --ftps-implicit --ftps-resume-ssl --ftps-clear-data-connection
  --ftps-fallback-to-ftp --warc-cdx --no-warc-compression --no-warc-digests --no-warc-keep-log --recursive
  --delete-after --convert-links --convert-file-only --backup-converted --mirror --page-requisites --strict-comments
  --follow-ftp --span-hosts --relative --trust-server-names --no-parent`;

/** `-nv`, `-nc` and the like: a letter behind -n. */
const WGET_VALUES = `-n: -t: -T: -w: -Q: -U: -l: -A: -R: -D: -I: -X: --report-speed= --tries= --retry-on-http-error=
  --start-pos= --progress= --timeout= --dns-timeout= --connect-timeout= --read-timeout= --wait= --waitretry= --quota=
  --bind-address= --limit-rate= --restrict-file-names= --prefer-family= --user= --password= --local-encoding=
  --remote-encoding= --cut-dirs= --http-user= --http-password= --default-page= --header= --compression=
  --max-redirect= --proxy-user= --proxy-password= --referer= --user-agent= --post-data= --method= --body-data=
  --secure-protocol= --certificate-type= --private-key-type= --pinnedpubkey= --ciphers= --ftp-user= --ftp-password=
  --warc-header= --warc-max-size= --level= --backups= --accept= --reject= --accept-regex= --reject-regex=
  --regex-type= --domains= --exclude-domains= --follow-tags= --ignore-tags= --include-directories=
  --exclude-directories=`;

const WGET_FILES = `-i:read --input-file=read --load-cookies=read --post-file=read --body-file=read --certificate=read
  --private-key=read --ca-certificate=read --ca-directory=read --crl-file=read --warc-dedup=read
  -O:write --output-document=write -o:write --output-file=write -a:write --append-output=write --rejected-log=write
  --save-cookies=write --hsts-file=write --warc-file=write --warc-tempdir=target -P:target --directory-prefix=target
  -e:loads --execute=loads --config=loads --use-askpass=loads`;

/** Files that get their names from the other side. */
function savedByWget(use: Use): readonly Found[] {
  if (given(use, "-O", "--output-document", "--spider")) return [];
  const folder = valuesOf(use, "-P", "--directory-prefix").at(-1);
  const chosen = given(use, ...CHOSEN) || use.operands.length === 0;
  return downloads(use, chosen ? [] : use.operands, folder);
}

/** With these the address does not say how the files are called. */
const CHOSEN = [
  "-r",
  "--recursive",
  "-m",
  "--mirror",
  "-p",
  "--page-requisites",
  "-x",
  "--force-directories",
  "-i",
  "--input-file",
  "--content-disposition",
  "--trust-server-names",
  "-e",
  "--execute",
];

export const WGET: Readonly<Record<string, Model>> = {
  wget: {
    options: `${WGET_FLAGS} ${WGET_VALUES} ${WGET_FILES} -B:host --base=host`,
    operands: "host*",
    abbreviates: true,
    tells: "--version -V --help -h",
    also: (use) => [...reachesAnyway(use), ...savedByWget(use)],
  },
  /** Takes the options of wget, and more. */
  wget2: {
    options: `${WGET_FLAGS} ${WGET_VALUES} ${WGET_FILES} -B:host --base=host`,
    operands: "host*",
    tells: "--version -V --help -h",
    also: (use) => [...reachesAnyway(use), ...savedByWget(use)],
  },
  aria2c: {
    options: `-cqnVD46 --continue=? --quiet=? --check-integrity=? --no-conf=? --allow-overwrite=? --auto-file-renaming=?
      --check-certificate=? --dry-run=? --file-allocation= --max-connection-per-server= --max-concurrent-downloads=
      --split= --min-split-size= --header= --user-agent= --referer= --http-user= --http-passwd= --max-tries=
      --retry-wait= --timeout= --console-log-level= --log-level= --summary-interval= --seed-time= --checksum=
      -x: -j: -s: -k: -m: -t: -U: -Z -d:target --dir=target -o:write --out=write -l:write --log=write
      -i:read --input-file=read --load-cookies=read --save-cookies=write --save-session=write --all-proxy=host
      --http-proxy=host --https-proxy=host --conf-path=loads --on-download-complete=loads --on-download-error=loads
      --on-download-start=loads --on-download-stop=loads --on-download-pause=loads --on-bt-download-complete=loads`,
    operands: "host*",
    tells: "--version -v --help -h",
    also: (use) => [
      ...reachesAnyway(use),
      ...downloads(use, given(use, "-o", "--out", "-i", "--input-file") ? [] : use.operands, folderOf(use)),
      ...valuesOf(use, "-o", "--out").flatMap((file) => {
        const folder = folderOf(use);
        return folder === undefined
          ? []
          : [writing({ ...file, value: `${folder.value}/${file.value}` }, use)];
      }),
    ],
  },
  axel: {
    options: `-46aqvkcp -n: -s: -S? -H: -U: -T: -N -A --num-connections= --max-speed= --search=? --header= --user-agent=
      --no-proxy --quiet --verbose --alternate --insecure --no-clobber --timeout= -o:write --output=write`,
    operands: "host*",
    tells: "--version -V --help -h",
    also: (use) => [
      ...reachesAnyway(use),
      ...(given(use, "-o", "--output") ? [] : downloads(use, use.operands)),
    ],
  },
};

const folderOf = (use: Use): ReturnType<typeof valuesOf>[number] | undefined =>
  valuesOf(use, "-d", "--dir").at(-1);

/** What the table of curl cannot say. */
const curlEffects = (use: Use): readonly Found[] => [
  ...reachesAnyway(use),
  ...sentFiles(use),
  ...otherHosts(use),
  ...[...use.operands, ...valuesOf(use, "--url")].flatMap((address) => localFile(address, use)),
  ...saved(use),
];

/** Options whose value is a file when it begins so. */
const SENT: readonly (readonly [options: readonly string[], file: RegExp])[] = [
  [
    ["-d", "--data", "--data-ascii", "--data-binary", "--json", "-H", "--header", "--proxy-header"],
    /^@(.+)$/,
  ],
  [["-w", "--write-out", "--variable"], /^(?:%?[^@=]*)?@(.+)$/],
  [["--data-urlencode", "--url-query"], /^[^=@]*@(.+)$/],
  [["-F", "--form"], /^[^=]*=[@<]"?([^;",]+)/],
  // A name without an equals sign is a file of cookies.
  [["-b", "--cookie"], /^([^=]+)$/],
  [["--pinnedpubkey", "--proxy-pinnedpubkey"], /^(?!sha256\/\/)(.+)$/],
];

const sentFiles = (use: Use): readonly Found[] =>
  SENT.flatMap(([options, file]) =>
    valuesOf(use, ...options).flatMap((value) => {
      const path = file.exec(value.value)?.[1];
      return path === undefined || path === "-" ? [] : [reading(part(value, path), use)];
    }),
  );

/** `--connect-to HOST1:PORT1:HOST2:PORT2` and `--resolve HOST:PORT:ADDRESS`: another host than the address says. */
const otherHosts = (use: Use): readonly Found[] =>
  valuesOf(use, "--connect-to", "--resolve").map((value): Found => {
    const [, host] = /^[^:]*:[^:]*:(\[[^\]]*\]|[^:,]*)/.exec(value.value) ?? [];
    return { kind: "network", hosts: host === undefined ? [] : hostsOf(part(value, host)), span: value.span };
  });

function localFile(address: Arg, use: Use): readonly Found[] {
  const path = /^file:\/\/?(?:localhost|127\.0\.0\.1)?(\/.*)$/i.exec(address.value)?.[1];
  return path === undefined ? [] : [reading(part(address, path), use)];
}

/** Files named after the address, and where `--output-dir` puts those that are named. */
function saved(use: Use): readonly Found[] {
  const folder = valuesOf(use, "--output-dir").at(-1);
  const named = given(use, "-O", "--remote-name", "--remote-name-all", "-J", "--remote-header-name");
  const addresses = [...use.operands, ...valuesOf(use, "--url")];
  const headers = given(use, "-J", "--remote-header-name");
  return [
    ...(named ? downloads(use, headers ? [] : addresses, folder) : []),
    ...(folder === undefined
      ? []
      : valuesOf(use, "-o", "--output").map((file) =>
          writing(part(file, `${folder.value}/${file.value}`), use),
        )),
  ];
}

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
