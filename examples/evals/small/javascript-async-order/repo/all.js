/** What `load` gives for each name. */
export async function fetchAll(names, load) {
  const results = [];
  for (const name of names) load(name).then((result) => results.push(result));
  return results;
}
