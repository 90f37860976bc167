#!/bin/sh
# Tests that need no engine and start none of our programs.
cd "$(dirname "$0")/.." || exit 1
PATH=$PWD/node_modules/.bin:$PATH
exec node test/run.ts unit
