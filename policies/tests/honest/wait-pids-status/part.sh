#!/bin/bash
./solver --part "$1"
