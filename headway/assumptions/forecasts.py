"""The rate of a running query: how it is averaged and forecast, and when it has jumped."""

from __future__ import annotations

from headway.assumptions import Assumption, seconds

FORECAST_WINDOWS = Assumption(
    name="Bins over which the rate is averaged",
    value=(8, 30, 120),
    unit="bins",
    source="judgement: two minutes, or seven and a half or thirty if they forecast better",
    influences="the forecast rate of a running query (A1)",
)
FORECAST_LEAD_BINS = Assumption(
    name="Bins ahead for which the averages of a rate are compared",
    value=5,
    unit="bins",
    source="judgement: as far ahead as executors take to arrive",
    influences="which average is the forecast rate of a running query (A1)",
)
FORECAST_ERRORS_KEPT = Assumption(
    name="Number of latest forecast errors that count",
    value=40,
    unit="bins",
    source="judgement: ten minutes; older errors are out of date",
    influences="the forecast rate (A1), its jumps (A2), and the rate to prepare for (A3)",
)
FEWEST_FORECAST_ERRORS = Assumption(
    name="Minimum number of errors to assess a forecast",
    value=8,
    unit="bins",
    source="judgement: two minutes; the median of fewer is unstable",
    influences="the forecast rate (A1), its jumps (A2), and the rate to prepare for (A3)",
)
JUMP_BINS = Assumption(
    name="Consecutive bins outside the band that count as a jump",
    value=2,
    unit="bins",
    source="judgement: one is an outlier or a late count",
    influences="when older bins are dropped (A2)",
)
TREND_BINS = Assumption(
    name="Bins to which a trend is fitted",
    value=30,
    unit="bins",
    source="judgement: seven minutes show a trend of a day despite noise of a tenth",
    influences="the forecast rate of a running query (A1)",
)
TREND_ERRORS = Assumption(
    name="Minimum trend, in standard errors",
    value=3.0,
    source="judgement: noise without a trend looks like one about once in four hundred bins",
    influences="whether a trend is continued (A1)",
)
JUMP_SPREADS = Assumption(
    name="Band around the forecast, in spreads of its errors",
    value=4.0,
    source="judgement: two bins in a row outside it are not noise",
    influences="when older bins are dropped (A2)",
)
LEAST_SPREAD_RATIO = Assumption(
    name="Minimum spread of forecast errors",
    value=0.02,
    source="judgement: no stream is more regular, and a regular one must not raise an alarm at "
    "each row",
    influences="jumps (A2), and the rate to prepare for (A3)",
)
FIRST_ERRORS_RATIO = Assumption(
    name="Spread of forecast errors until eight are known",
    value=0.1,
    source="judgement: that of most streams over two minutes",
    influences="the size that is kept after a start (A9)",
)
BETTER_FORECAST_RATIO = Assumption(
    name="Maximum errors of a longer average that is preferred, over the shortest one's",
    value=0.95,
    source="judgement: an average of few bins reacts sooner, so a longer one must be clearly "
    "better",
    influences="the forecast rate of a running query (A1)",
)
DAILY_SLOT_S = seconds(
    name="Length of a slot of the day",
    value=300.0,
    source="judgement: long enough to average noise, and few enough slots to keep for days",
    influences="the daily pattern of the rate of a running query (A17)",
)
DAYS_KEPT = Assumption(
    name="Number of days over which the daily pattern is averaged",
    value=4,
    unit="days",
    source="judgement: a pattern that has changed is forgotten within a week",
    influences="the daily pattern of the rate of a running query (A17)",
)
DAILY_COMPARED_RATIO = Assumption(
    name="Minimum share of the last day on which the daily pattern is assessed",
    value=0.9,
    source="judgement: a pattern that has not been seen twice is none",
    influences="whether the daily pattern is used (A17)",
)
DAILY_ERROR_RATIO = Assumption(
    name="Maximum RMS error of the daily pattern over that of the rate just before",
    value=0.9,
    source="judgement: a smaller gain may be chance",
    influences="whether the daily pattern is used (A17)",
)
DAILY_SLOT_SEEN_RATIO = Assumption(
    name="Minimum observed share of a slot of the day",
    value=0.5,
    source="judgement: a slot of which less was seen is left out",
    influences="the daily pattern of the rate of a running query (A17)",
)
