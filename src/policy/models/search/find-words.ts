/** The words of find's expressions. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Predicates without a value that only test or print. */
export const PLAIN =
  words(`-daystart -depth -d -follow -ignore_readdir_race -noignore_readdir_race -mount -xdev -nowarn
  -warn -noleaf -empty -executable -readable -writable -true -false -nogroup -nouser -print -print0 -ls -prune -quit
  -help --help -version --version`);

/** Predicates with one value that is only compared with or printed. */
export const VALUED =
  words(`-maxdepth -mindepth -regextype -amin -atime -cmin -ctime -fstype -gid -group -ilname -iname
  -inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -path -perm -regex -size -type -uid -used -user
  -wholename -xtype -context -printf`);

/** Predicates whose value is a file that is looked at. */
export const COMPARED = /^-(?:[ac]?newer|samefile|newer[aBcm][aBcm])$/;

/** `-newermt '1 day ago'`: the value is a time. */
export const TIMED = /^-newer[aBcm]t$/;

/** Actions that write a file; all words but the first of their values are data. */
export const WRITING: Readonly<Record<string, number>> = {
  "-fprint": 1,
  "-fprint0": 1,
  "-fls": 1,
  "-fprintf": 2,
};

/** Actions that run a command; whether in the folder of what was found. */
export const RUNNING: Readonly<Record<string, boolean>> = {
  "-exec": false,
  "-ok": false,
  "-execdir": true,
  "-okdir": true,
};

/** Tests that leave over some of what is there, however their value reads. */
export const NARROWING =
  words(`-empty -amin -atime -cmin -ctime -mmin -mtime -newer -anewer -cnewer -samefile -size -inum
  -used -lname -ilname -nouser -nogroup`);

/** Tests by name: they leave over what their pattern says. */
export const NAMING = words("-name -iname -path -ipath -wholename -iwholename -regex -iregex");
