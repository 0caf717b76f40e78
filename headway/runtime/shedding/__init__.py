"""Load shedding: rows are marked before the stateful operator, or split off in foreachBatch."""
