/** Every container of a box carries these; it is found again by them and never by its name. */
export const BOX_LABEL = "dev.harness.box";
export const UID_LABEL = "dev.harness.uid";

export const ownerLabels = (uid: number): Readonly<Record<string, string>> => ({
  [BOX_LABEL]: "1",
  [UID_LABEL]: String(uid),
});
