#!/bin/sh
# Creates the namespace, which keeps closed workflows for 90 days. One that is there stays as it is.
set -eu
until temporal operator cluster health >/dev/null 2>&1; do
  echo "waiting for Temporal at $TEMPORAL_ADDRESS"
  sleep 1
done
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
  temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 90d
# A server learns of a new namespace through a cache that is refreshed every few seconds.
until temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; do
  echo "waiting for namespace $TEMPORAL_NAMESPACE"
  sleep 1
done
