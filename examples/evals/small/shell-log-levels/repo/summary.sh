#!/bin/sh
# How many lines of a log have each level. A line: TIME LEVEL TEXT
for level in ERROR WARN INFO; do
  echo "$level $(grep -c "$level" "$1")"
done
