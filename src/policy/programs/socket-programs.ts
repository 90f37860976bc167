import { hostsOf } from "./argument-roles.ts";
import {
  commandsFromStdin,
  given,
  named,
  networkTo,
  part,
  reachesAnyway,
  reading,
  remote,
  writing,
} from "./network-arguments.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

/** `-e` runs a program and `-c` a text for a shell, in most of those called so. */
const NETCAT: Model = {
  options: `-46bCdDFhklNnrStUuvz -i: -I: -m: -M: -O: -P: -p: -q: -s: -T: -V: -W: -w: -X: -x:host -g: -G: -o:write
    -e:shell -c:shell --exec=shell --sh-exec=shell --lua-exec=project --listen --keep-open --udp --sctp --ssl --verbose
    --wait= --idle-timeout= --source= --source-port= --max-conns= --send-only --recv-only --broker --chat --nodns --no-shutdown
    --crlf --telnet --unixsock --vsock --zero --proxy=host --proxy-type= --proxy-auth= --output=write --hex-dump=write
    --append-output --ssl-cert=read --ssl-key=read --ssl-trustfile=read --ssl-verify --allow= --deny= --allowfile=read
    --denyfile=read`,
  operands: "host data*",
  tells: "--version --help -h",
  also: reachesAnyway,
};

/** One end of socat: `TYPE:what:more,options`. */
function endEffects(end: Arg, use: Use, readOnly: boolean): readonly Found[] {
  const [, type = "", rest = ""] = /^([^:,]*)[:,]?([^]*)$/.exec(end.value) ?? [];
  const what = part(end, beforeOptions(rest));
  if (/^(?:EXEC|SYSTEM|SHELL)$/i.test(type)) return use.shell(what);
  if (/^(?:CREATE|CREAT|OPEN|GOPEN|FILE|PIPE|FIFO)$/i.test(type))
    return [readOnly ? reading(what, use) : writing(what, use)];
  if (/^(?:TCP|UDP|SCTP|DCCP|SSL|OPENSSL|SOCKS|PROXY|IP)/i.test(type) && !/LISTEN|RECV/i.test(type))
    return [networkTo(what)];
  return [];
}

/** Up to the first comma that no backslash stands before. */
function beforeOptions(text: string): string {
  for (let at = text.indexOf(","); at !== -1; at = text.indexOf(",", at + 1))
    if (text.charAt(at - 1) !== "\\") return text.slice(0, at);
  return text;
}

/** Either end may be two, one for each direction; with `-u` the first is only read, with `-U` the second. */
function ends(use: Use): readonly Found[] {
  const source = given(use, "-u") ? 0 : given(use, "-U") ? 1 : -1;
  const found = use.operands.flatMap((arg, index) =>
    arg.value.split("!!").flatMap((end) => endEffects(part(arg, end), use, index === source)),
  );
  return found.some(({ kind }) => kind === "network") ? found : [{ kind: "network", hosts: [] }, ...found];
}

/** What comes in by stdin are commands for the client, and `!command` is one of them. */
const scripted = (options: string): Model => ({
  options,
  operands: "host data*",
  tells: "--version --help -h",
  also: (use) => [...reachesAnyway(use), ...commandsFromStdin(use)],
});

/** Addresses and keys of a mail or a page are data; files that are sent are named. */
const MAIL: Model = {
  options:
    "-EIinNuvBt -s: -c: -b: -r: -f: -q:read -a:read -A:read -S:loads -C:loads -X:write -F:loads -e:loads",
  operands: "data*",
  tells: "--version -V --help",
  also: ({ operands }) => [
    { kind: "network", hosts: operands.filter(({ value }) => value.includes("@")).flatMap(hostsOf) },
  ],
};

/** The command runs with its connections led elsewhere. */
const LEADS: Model = {
  options: "-q -f:loads -i -p: -P: -u: -a: --quiet",
  operands: "command*",
  strict: true,
  fixed: ["network"],
};

export const SOCKETS: Readonly<Record<string, Model>> = {
  nc: NETCAT,
  ncat: NETCAT,
  netcat: NETCAT,
  "nc.traditional": NETCAT,
  "nc.openbsd": NETCAT,
  cryptcat: NETCAT,
  socat: {
    options: `-d -dd -ddd -dddd -D -u -U -v -x -s -g -4 -6 -0 -b= -t= -T= -L=write -W=write -lf=write -lp= -lm -ly -ls -lu -lh
      -S= -r=write -R=write --experimental --statistics`,
    singleDash: true,
    operands: "data*",
    tells: "-V -h -hh --version --help",
    also: ends,
  },
  telnet: {
    options: "-468EFKLacdfrx -X: -b: -e: -k: -l: -S: -n:write",
    operands: "host data",
    also: reachesAnyway,
  },
  ftp: scripted("-46adefginptvxA -N:loads -o:write -P: -q: -r: -s: -T: -u:host"),
  tftp: scripted("-46v -c: -l -m: -R:"),
  pftp: scripted("-dginv"),
  lftp: {
    ...scripted("-d -p: -u: -e:code -c:code -f:loads --norc --rcfile=loads"),
    tells: "--version -v --help -h",
  },
  ncftp: scripted(""),
  ncftpget: remote(),
  ncftpput: remote(),
  mail: MAIL,
  mailx: MAIL,
  "s-nail": MAIL,
  Mail: MAIL,
  mutt: MAIL,
  neomutt: MAIL,
  sendmail: MAIL,
  msmtp: MAIL,
  ssmtp: MAIL,
  swaks: remote(),
  torsocks: LEADS,
  torify: LEADS,
  tsocks: LEADS,
  proxychains: LEADS,
  proxychains4: LEADS,
};

const asks = (options: string, tells: string): Model => ({
  options,
  operands: "host*",
  tells,
  also: reachesAnyway,
});

/** Names and addresses are asked of a server: what stands in them leaves the machine. */
const NAMES: Model = { reads: lookups, tells: "-v -h --version --help" };

/** `@server name type +option …`: the hosts are the server and whatever has a dot. */
function lookups(use: Use): readonly Found[] {
  const found = use.args.flatMap((arg, index): readonly Found[] => {
    const before = use.args[index - 1]?.value;
    if (before === "-f" || before === "-k") return [reading(arg, use)];
    if (/^-[fk]./.test(arg.value)) return [reading(part(arg, arg.value.slice(2)), use)];
    return /^[^-+].*[.:]/.test(arg.value) ? [networkTo(arg)] : [];
  });
  return found.some(({ kind }) => kind === "network") ? found : [{ kind: "network", hosts: [] }, ...found];
}

const PING = asks(
  "-aAbBCdDfHhLlnOqrRUv346 -c: -e: -F: -i: -I: -M: -m: -N: -p: -Q: -s: -S: -t: -T: -W: -w: --count= --interval= --timeout=",
  "-V --version -h --help",
);
const TRACE = asks(
  "-46dFITUnrAebp -f: -g:host -i: -m: -N: -q: -s: -t: -w: -z: -M: -l: --mtu --back --tcp --icmp --udp --port= --max-hops=",
  "-V --version --help",
);

/** What leaves or reaches the machine, seen or made up packet by packet. */
const PACKETS = `zenmap masscan zmap rustscan arping hping3 hping fping nping scapy ettercap bettercap dsniff nikto
  sqlmap gobuster ffuf dirb wfuzz hydra amass subfinder iperf iperf3 netperf speedtest speedtest-cli smbclient smbmap
  rpcclient snmpwalk snmpget ldapsearch ldapmodify showmount onesixtyone avahi-browse avahi-resolve upnpc nbtscan
  ntpdate ntpq chronyd sntp rdate wakeonlan etherwake whois finger rwhois rlogin rsh rexec rcp xfreerdp rdesktop
  vncviewer irssi weechat`;

const CAPTURES: Model = {
  options: `-AbdDefhHIJKlLnNOpqStuUvxX# -B: -c: -C: -E: -F:read -G: -i: -j: -m:loads -M: -Q: -r:read -s: -T: -V:read
    -w:write -W: -y: -z:loads -Z: -g -Y: -R: -a: -P`,
  operands: "data*",
  fixed: ["network"],
  tells: "--version --help -h",
};

const CAPTURES_FROM_MANY = remote("--version -v --help -h");

/** Tables of the system by name; those of hosts are asked of a server. */
function entries(use: Use): readonly Found[] {
  const [table, ...rest] = use.operands;
  if (table === undefined) return [];
  if (/^(?:a?hosts(?:v[46])?|networks|netgroup|ethers)$/.test(table.value))
    return rest.length === 0 ? [reading(part(table, "/etc/hosts"), use)] : rest.map(networkTo);
  return /^(?:passwd|group|shadow|gshadow|services|protocols|rpc|aliases|initgroups)$/.test(table.value)
    ? [reading(part(table, `/etc/${table.value}`), use)]
    : [use.doubt("operand.unknown", table)];
}

/** `-option` and `--option` are the same; none may be shortened or bundled. */
const table = (options: string, operands = ""): Model => ({
  options: `-help ${CODE} ${options}`,
  operands,
  singleDash: true,
  tells: "-help --help",
});

/** Libraries and settings that run code. */
const CODE = "-engine=loads -provider=loads -provider-path=loads -config=loads -propquery=";

export const PROBES: Readonly<Record<string, Model>> = {
  ...named("dig kdig drill delv dog doggo", NAMES),
  nslookup: { reads: lookups, tells: "-version --version" },
  host: { reads: lookups, tells: "-V" },
  resolvectl: remote(),
  "systemd-resolve": remote(),
  ping: PING,
  ping4: PING,
  ping6: PING,
  traceroute: TRACE,
  traceroute6: TRACE,
  tracepath: TRACE,
  tracepath6: TRACE,
  mtr: remote("--version -v --help -h"),
  nmap: remote("--version -V --help -h"),
  ...named(PACKETS, remote()),
  tcpdump: CAPTURES,
  tshark: CAPTURES_FROM_MANY,
  wireshark: CAPTURES_FROM_MANY,
  dumpcap: CAPTURES_FROM_MANY,
  ngrep: remote(),
  getent: { options: "-i --no-idn", operands: "data*", also: entries },
};

const FORMS = "-inform= -outform= -text -noout -nameopt= -certopt=";

/** `http:`, `file:` and other schemes stand for files as well. */
const schemes = (use: Use): readonly Found[] =>
  use.args
    .filter(({ value }) => /^[a-z][a-z0-9.+-]+:/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));

const opensslPart = (options: string, operands = ""): Model => ({
  ...table(options, operands),
  also: schemes,
});

/** Makes, unlocks or changes keys and what they sign: never without being asked. */
const secretive = (options: string): Model => ({ ...table(options, "data*"), fixed: ["ask"] });

const KEY = `${FORMS} -in=read -out=write -pubin -pubout -pubcheck -check -modulus -passin= -passout= -traditional -aes128
  -aes256 -des3 -topk8 -nocrypt -inkey=read -key=read -keyout=write -newkey= -new -x509 -nodes -noenc -batch -days= -subj=
  -addext= -extensions= -extfile=read -reqexts= -CA=read -CAkey=read -CAfile=read -CAserial=write -CAcreateserial -set_serial=
  -sha256 -sha384 -sha512 -algorithm= -pkeyopt= -paramfile=read -genkey -name= -param_enc= -conv_form= -export
  -certfile=read -certs=read -caname= -macalg= -legacy -keypbe= -certpbe= -nokeys -nocerts -clcerts -cacerts -info`;

const CIPHER = `-in=read -out=write -e -d -a -base64 -A -k= -kfile=read -K= -iv= -S= -salt -nosalt -p -P -pass= -pbkdf2 -iter= -md=
  -nopad -bufsize= -v -aes-128-cbc -aes-256-cbc -aes-256-ctr -aes256 -aes128 -des3 -list -ciphers`;

const DIGESTS = `md5 sha1 sha224 sha256 sha384 sha512 sha512-224 sha512-256 sha3-224 sha3-256 sha3-384 sha3-512 shake128
  shake256 blake2b512 blake2s256 rmd160 ripemd160 sm3`;

const DIGEST = opensslPart(
  `-c -d -r -hex -binary -list -xoflen= -fips-fingerprint -non-fips-allow -hmac= -out=write -sign=read -verify=read
  -prverify=read -signature=read -keyform= -passin= -sigopt= -mac= -macopt= ${DIGESTS.split(/\s+/)
    .map((name) => `-${name}`)
    .join(" ")}`,
  "read*",
);

const TALKS: Model = {
  ...table(
    `-connect=host -host=host -port= -servername= -proxy=host -accept= -cert=read -key=read -CAfile=read -CApath=read
    -showcerts -brief -quiet -state -debug -msg -tls1 -tls1_1 -tls1_2 -tls1_3 -no_ssl3 -no_tls1 -no_tls1_1 -no_tls1_2
    -no_tls1_3 -alpn= -nextprotoneg= -starttls= -xmpphost= -name= -verify= -verify_return_error -verify_hostname= -status
    -cipher= -ciphersuites= -curves= -groups= -sigalgs= -reconnect -crlf -ign_eof -no_ign_eof -prexit -4 -6 -www -WWW
    -HTTP -rev -keylogfile=write -msgfile=write -sess_out=write -sess_in=read -keymatexport= -url=host -issuer=read
    -reqin=read -respout=write -noverify -time= -bugs -new -reuse -CRL=read -noservername`,
    "host",
  ),
  fixed: ["network"],
};

export const OPENSSL: Readonly<Record<string, Model>> = {
  openssl: {
    tells: "version help --help -help --version -v",
    singleDash: true,
    commands: {
      version: opensslPart("-a -b -d -e -f -o -p -v -r -c"),
      help: opensslPart("", "data*"),
      list: opensslPart(`-1 -commands -digest-commands -digest-algorithms -cipher-commands -cipher-algorithms -providers -verbose
        -public-key-algorithms -disabled -options= -kdf-algorithms -mac-algorithms -tls-groups -all-algorithms`),
      ciphers: opensslPart(
        "-s -v -V -stdname -tls1 -tls1_1 -tls1_2 -tls1_3 -psk -srp -ciphersuites= -convert=",
        "data",
      ),
      dgst: DIGEST,
      ...named(DIGESTS, DIGEST),
      x509: opensslPart(
        `${FORMS} -in=read -out=write -serial -subject -issuer -dates -startdate -enddate -fingerprint -hash -subject_hash
        -issuer_hash -email -ocsp_uri -purpose -pubkey -modulus -alias -ext= -checkend= -checkhost= -checkemail= -checkip=
        -sha1 -sha256 -sha384 -sha512 -md5 -signkey=read -key=read -CA=read -CAkey=read -CAserial=write -CAcreateserial!ask
        -req!ask -days= -set_serial= -extfile=read -extensions= -passin= -trustout -clrext -dateopt=`,
      ),
      crl: opensslPart(
        `${FORMS} -in=read -out=write -CAfile=read -CApath=read -hash -fingerprint -issuer -lastupdate -nextupdate -verify`,
      ),
      verify: opensslPart(
        `-CAfile=read -CApath=read -untrusted=read -trusted=read -CRLfile=read -crl_check -crl_check_all -purpose= -verbose
        -verify_hostname= -verify_email= -verify_ip= -x509_strict -partial_chain -no_check_time -attime= -show_chain
        -no-CAfile -no-CApath -nameopt=`,
        "read*",
      ),
      asn1parse: opensslPart(
        "-inform= -in=read -out=write -noout -offset= -length= -i -dump -dlimit= -oid=read -strparse= -genstr= -genconf=loads",
      ),
      rand: opensslPart("-out=write -base64 -hex -writerand=write -rand=read", "data"),
      prime: opensslPart("-hex -generate -bits= -safe -checks=", "data*"),
      errstr: opensslPart("", "data*"),
      base64: opensslPart(`-in=read -out=write -e -d -a -A -v -bufsize=`),
      enc: secretive(CIPHER),
      ...named("aes-128-cbc aes-256-cbc aes-256-ctr des3", secretive(CIPHER)),
      ...named(
        `genrsa genpkey gendsa req rsa rsautl pkey pkeyutl pkeyparam pkcs7 pkcs8 pkcs12 ec ecparam dsa dsaparam dhparam ca
        cms smime spkac crl2pkcs7 passwd kdf mac rehash storeutl srp ts nseq fipsinstall speed info sess_id`,
        secretive(KEY),
      ),
      ...named("s_client s_server s_time ocsp cmp", TALKS),
      engine: { ...opensslPart("-v -t -c -vv -vvv -pre= -post=", "loads*") },
    },
  },
  ...named("gnutls-cli gnutls-serv step", remote()),
  ...named("certtool certutil pk12util mkcert cfssl", { operands: "data*", fixed: ["ask"] }),
};

/** Who this machine talks to, and how: showing it is asked for as well. */
const SHOWS =
  "nstat ifstat iftop nethogs bmon vnstat conntrack ethtool iw iwconfig arp ipset iptables-save ip6tables-save";

/** What changes how this machine is connected. */
const CONNECTS = `ebtables arptables ipvsadm brctl bridge ifup ifdown rfkill nmcli networkctl wpa_supplicant wpa_cli dhclient dhcpcd
  netplan wg wg-quick openvpn openconnect vpnc ipsec tailscale tailscaled zerotier-cli nebula`;

const LISTS =
  /^(?:-[ltunpaeiomsHOM46x]+|--(?:listening|tcp|udp|numeric|processes|programs|all|unix|summary|no-header|wide|numeric-ports))$/;

export const LINKS: Readonly<Record<string, Model>> = {
  ...named("ss netstat", { reads: connections, tells: "--version -V --help -h" }),
  ...named(SHOWS, remote()),
  ...named(CONNECTS, remote()),
};

/** They tell of their own machine; with names, they would ask for them. */
function connections({ args }: Use): readonly Found[] {
  const own = args.every(({ kind, value }) => kind === "literal" && LISTS.test(value));
  const numbers = args.some(({ value }) => /^-[a-zA-Z]*n|^--numeric/.test(value));
  return [{ kind: "network", hosts: [], ...(own && numbers ? { inside: true } : {}) }];
}
