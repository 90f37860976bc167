export const runSummary = (event: object, stream: object): string => {
  void stream;
  return JSON.stringify(event) + "\n";
};
