#!/bin/sh
# list.sh FOLDER: the names in it, sorted
ls "$1" | sort
