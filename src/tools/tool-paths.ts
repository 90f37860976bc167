/** Absolute, without `.` or `..`: what is judged is what is touched. */
export function absolute(workspace: string, path: string): string {
  const kept: string[] = [];
  for (const name of (path.startsWith("/") ? path : `${workspace}/${path}`).split("/")) {
    if (name === "..") kept.pop();
    else if (name !== "" && name !== ".") kept.push(name);
  }
  return `/${kept.join("/")}`;
}

/** Below the workspace as the model writes it, elsewhere absolute; a name that would break the line is quoted. */
export function shown(workspace: string, path: string): string {
  if (path === workspace) return ".";
  return nameShown(path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path);
}

export const nameShown = (name: string): string =>
  /[\u0000-\u001F\u007F]/.test(name) ? JSON.stringify(name.toWellFormed()) : name.toWellFormed();

export const folderOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf("/")));
export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
