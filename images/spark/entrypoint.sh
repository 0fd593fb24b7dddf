#!/bin/bash
# Entry point of the Spark image. Spark's Kubernetes backend starts executors with the single argument "executor" and
# says the rest in SPARK_* variables (org.apache.spark.deploy.k8s.features.BasicExecutorFeatureStep). Anything else is a
# command to run.
set -euo pipefail

if [ "${1:-}" != executor ]; then
  exec /usr/bin/tini -s -- "$@"
fi

for name in SPARK_DRIVER_URL SPARK_EXECUTOR_ID SPARK_EXECUTOR_CORES SPARK_EXECUTOR_MEMORY SPARK_APPLICATION_ID \
  SPARK_EXECUTOR_POD_IP SPARK_RESOURCE_PROFILE_ID SPARK_EXECUTOR_POD_NAME; do
  if [ -z "${!name:-}" ]; then
    echo "executor: $name is not set; executors are started by Spark's Kubernetes backend, not by hand" >&2
    exit 2
  fi
done

# The numbers matter: a later option overrides an earlier one.
options=()
while IFS= read -r name; do
  options+=("${!name}")
done < <(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4 -n)

classpath="${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*"
[ -z "${SPARK_EXTRA_CLASSPATH:-}" ] || classpath="$SPARK_EXTRA_CLASSPATH:$classpath"
[ -z "${SPARK_CONF_DIR:-}" ] || classpath="$SPARK_CONF_DIR:$classpath"
# The archive of classes serves class paths that begin with its own (archive/make.py); what people put first stays first.
archived=/opt/tidegate/archive/classpath
[ -n "${SPARK_CLASSPATH:-}${SPARK_EXTRA_CLASSPATH:-}" ] || [ ! -f "$archived" ] || classpath="$(cat "$archived"):$classpath"

exec /usr/bin/tini -s -- java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "$classpath" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
