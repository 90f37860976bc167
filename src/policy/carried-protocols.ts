/**
 * What no grant brings about: the way out of a box carries HTTP, HTTPS and what a program tunnels through CONNECT by itself.
 * Told in place of a grant, with what can be done instead.
 */

const DO_ELSEWHERE =
  "do it before or after the run, or run with --mode danger-full-access, whose box has a network";

const names = (text: string): readonly string[] => text.split(" ");

const KINDS: readonly {
  readonly programs: readonly string[];
  readonly schemes: readonly string[];
  readonly says: string;
}[] = [
  {
    programs: names(
      "ssh slogin dbclient autossh scp pscp sftp mosh sshpass sshfs sshuttle ssh-keyscan ssh-copy-id rsync rsh rlogin",
    ),
    schemes: names("ssh scp sftp rsync svn+ssh"),
    says: `no grant carries ssh or rsync: fetch files over https, or ${DO_ELSEWHERE}`,
  },
  {
    programs: names(
      "ping ping4 ping6 traceroute traceroute6 tracepath tracepath6 mtr nmap arping fping hping3 dig kdig drill nslookup host whois resolvectl ntpdate tcpdump tshark",
    ),
    schemes: names("dns icmp"),
    says: `no grant carries pings, scans or questions of names: whether a granted host answers, curl -sI https://HOST tells; or ${DO_ELSEWHERE}`,
  },
  {
    programs: names(
      "psql pg_dump pg_dumpall pg_basebackup mysql mariadb mysqldump mariadb-dump mysqladmin mariadb-admin mysqlimport mysqlshow mysqlcheck mariadb-check mysqlsh mongo mongosh redis-cli valkey-cli keydb-cli sqlcmd cqlsh",
    ),
    schemes: names(
      "postgres postgresql mysql mariadb mongodb mongodb+srv redis rediss amqp amqps mqtt mqtts nats kafka",
    ),
    says: `no grant carries a database's protocol: name the service in the environment's recipe, so that it runs in the box (harness env show), or ${DO_ELSEWHERE}`,
  },
  {
    programs: names("mail mailx s-nail Mail mutt neomutt sendmail msmtp ssmtp ldapsearch finger"),
    schemes: names("smtp smtps imap imaps pop3 pop3s ldap ldaps"),
    says: `no grant carries mail or directories: ${DO_ELSEWHERE}`,
  },
  {
    programs: names("nc ncat netcat nc.traditional nc.openbsd cryptcat socat telnet"),
    schemes: names("telnet tcp udp gopher dict tftp rtmp rtsp smb smbs"),
    says: `no grant carries bare connections: what the host offers over https, curl fetches; else ${DO_ELSEWHERE}`,
  },
  {
    programs: names("ftp tftp pftp ncftp"),
    schemes: names("ftp ftps"),
    says: `no grant carries FTP: fetch it over https, or ${DO_ELSEWHERE}`,
  },
];

/** Of bash: a file that is a connection. */
const DEVICE = /\/dev\/(?:tcp|udp)\//;
/** Bounded: it is looked for at each place of a model's text. */
const SCHEME = /(?<![\w+.-])([a-z][a-z0-9+.-]{1,15}):\/\//gi;
const OF_THE_WEB: ReadonlySet<string> = new Set(["http", "https", "ws", "wss"]);
/**
 * Why no grant would do for what this program asks of the network, and what would; undefined where one may. `shown`: its
 * own words, where the address of another program tells the protocol. git reads its addresses as https where they are granted.
 */
export function uncarried(by: string, shown: string): string | undefined {
  const named = KINDS.find(({ programs }) => programs.includes(by));
  if (named !== undefined) return named.says;
  if (DEVICE.test(shown)) return KINDS.find(({ programs }) => programs.includes("nc"))?.says;
  if (by === "git") return undefined;
  const schemes = [...shown.matchAll(SCHEME)].map(([, scheme = ""]) => scheme.toLowerCase());
  if (schemes.length === 0 || schemes.some((scheme) => OF_THE_WEB.has(scheme))) return undefined;
  return KINDS.find((kind) => schemes.some((scheme) => kind.schemes.includes(scheme)))?.says;
}
