import type { Found, Model, Use } from "../model.ts";
import { downloads } from "./downloads.ts";
import { given, reachesAnyway, valuesOf, writing } from "./parts.ts";

const FLAGS = `-bdqvFcNS46xErkKmpHL --background --debug --quiet --verbose --no-verbose --force-html --no-config
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
const VALUES = `-n: -t: -T: -w: -Q: -U: -l: -A: -R: -D: -I: -X: --report-speed= --tries= --retry-on-http-error=
  --start-pos= --progress= --timeout= --dns-timeout= --connect-timeout= --read-timeout= --wait= --waitretry= --quota=
  --bind-address= --limit-rate= --restrict-file-names= --prefer-family= --user= --password= --local-encoding=
  --remote-encoding= --cut-dirs= --http-user= --http-password= --default-page= --header= --compression=
  --max-redirect= --proxy-user= --proxy-password= --referer= --user-agent= --post-data= --method= --body-data=
  --secure-protocol= --certificate-type= --private-key-type= --pinnedpubkey= --ciphers= --ftp-user= --ftp-password=
  --warc-header= --warc-max-size= --level= --backups= --accept= --reject= --accept-regex= --reject-regex=
  --regex-type= --domains= --exclude-domains= --follow-tags= --ignore-tags= --include-directories=
  --exclude-directories=`;

const FILES = `-i:read --input-file=read --load-cookies=read --post-file=read --body-file=read --certificate=read
  --private-key=read --ca-certificate=read --ca-directory=read --crl-file=read --warc-dedup=read
  -O:write --output-document=write -o:write --output-file=write -a:write --append-output=write --rejected-log=write
  --save-cookies=write --hsts-file=write --warc-file=write --warc-tempdir=target -P:target --directory-prefix=target
  -e:loads --execute=loads --config=loads --use-askpass=loads`;

/** Files that get their names from the other side. */
function saved(use: Use): readonly Found[] {
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
    options: `${FLAGS} ${VALUES} ${FILES} -B:host --base=host`,
    operands: "host*",
    abbreviates: true,
    tells: "--version -V --help -h",
    also: (use) => [...reachesAnyway(use), ...saved(use)],
  },
  /** Takes the options of wget, and more. */
  wget2: {
    options: `${FLAGS} ${VALUES} ${FILES} -B:host --base=host`,
    operands: "host*",
    tells: "--version -V --help -h",
    also: (use) => [...reachesAnyway(use), ...saved(use)],
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
