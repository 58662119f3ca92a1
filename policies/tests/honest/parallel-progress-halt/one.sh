#!/bin/sh
exec ./prog --seed "$1"
