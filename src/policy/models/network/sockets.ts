import { hostsOf } from "../hosts.ts";
import type { Arg, Found, Model, Use } from "../model.ts";
import {
  commandsFromStdin,
  given,
  networkTo,
  part,
  reachesAnyway,
  reading,
  remote,
  writing,
} from "./parts.ts";

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
