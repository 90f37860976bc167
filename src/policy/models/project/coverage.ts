/** Reports of coverage that come with the tool; any other name is a package that it loads. */
export const COVERED =
  "text text-summary text-lcov lcov lcovonly html html-spa json json-summary cobertura clover teamcity none";
