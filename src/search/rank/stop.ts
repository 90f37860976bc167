/** Words of questions and of prose about changes that say nothing of what is looked for. Stems of them are not meant. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    "a about above after again against all also always an and another any anything are aren as at be because been " +
    "before being below between both but by can cannot could couldn did didn do does doesn doing don done down " +
    "during each either else etc even ever every few find for from further get gets getting give gives go goes " +
    "going good had has have haven having he hence her here him his how however if in instead into is isn it its " +
    "itself just know like ll look looks lot made make makes making many may maybe me might more most much must my " +
    "need needed needs neither never no nor not now of off on once one only onto or other others otherwise our out " +
    "over own perhaps please quite rather re really same see seem seems shall she should show shows since so some " +
    "something still such sure take takes tell than that the their them then there these they thing things this " +
    "those though through thus to too under until up upon us use used uses using ve very via want wants was wasn " +
    "way we well were what when where whether which while who whole whom whose why will with within without won " +
    "would wouldn yet you your"
  ).split(" "),
);
