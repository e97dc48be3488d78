import { assert, describe, it } from "@effect/vitest"
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1"
import { Duration, Effect } from "effect"
import { validate as isDeployment } from "kubernetes-models/_schemas/IoK8sApiAppsV1Deployment"
import { validate as isSecret } from "kubernetes-models/_schemas/IoK8sApiCoreV1Secret"
import { validate as isService } from "kubernetes-models/_schemas/IoK8sApiCoreV1Service"
import { validate as isNetworkPolicy } from "kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy"
import { validate as isPodDisruptionBudget } from "kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget"
import { readdirSync, readFileSync } from "node:fs"
import { parse } from "yaml"
import { AppConfig } from "../../../src/config/Config.ts"

/** docs/operating.md#kubernetes */

const folder = "deploy/kubernetes"
// oxlint-disable-next-line typescript/no-explicit-any -- validated by the schemas of Kubernetes
const read = (file: string): any => parse(readFileSync(`${folder}/${file}`, "utf8"))

/** The schema of each file, from Kubernetes' own OpenAPI document. */
const schemas = {
  "deployment.yaml": isDeployment,
  "network-policy.yaml": isNetworkPolicy,
  "pod-disruption-budget.yaml": isPodDisruptionBudget,
  "secret.example.yaml": isSecret,
  "service.yaml": isService
}

/**
 * Fails if the schema refuses a manifest. Returns the fields that the schema does not know, found by a validator that
 * reads every known field.
 */
const unknownFields = (manifest: unknown, isValid: (data: unknown) => boolean) => {
  const read = new Set<string>()
  const all: Array<string> = []
  const watched = (value: unknown, at: string): unknown => {
    if (typeof value !== "object" || value === null) return value
    const children = new Map(
      Object.entries(value).map(([name, child]) => {
        all.push(`${at}/${name}`)
        return [name, watched(child, `${at}/${name}`)] as const
      })
    )
    return new Proxy(value, {
      get: (target, name) => {
        read.add(`${at}/${String(name)}`)
        return children.get(String(name)) ?? Reflect.get(target, name)
      }
    })
  }
  assert.isTrue(isValid(watched(manifest, "")))
  return all.filter((path) => !read.has(path))
}

const deployment = read("deployment.yaml")
const pod = deployment.spec.template
const [container] = pod.spec.containers
const probeMillis = ({ failureThreshold, periodSeconds }: Record<string, number>) =>
  failureThreshold! * periodSeconds! * 1000

describe("the manifests for Kubernetes", () => {
  it("are valid in the schemas of Kubernetes, without unknown fields", () => {
    assert.sameMembers(readdirSync(folder), Object.keys(schemas))
    for (const [file, schema] of Object.entries(schemas)) {
      assert.deepStrictEqual(unknownFields(read(file), schema), [], file)
    }
    const monitor = parse(readFileSync("deploy/prometheus/service-monitor.yaml", "utf8"))
    assert.doesNotThrow(() => new ServiceMonitor(monitor).validate())
  })

  it("would not be valid with a value of a wrong type or an unknown field", () => {
    const wrong = structuredClone(deployment)
    wrong.spec.template.spec.containers[0].readinessProbe.periodSeconds = "2s"
    assert.isFalse(isDeployment(wrong))
    const unknown = structuredClone(deployment)
    unknown.spec.replicaz = 3
    unknown.spec.template.spec.containers[0].livenessProbe.period = 3
    assert.sameMembers(unknownFields(unknown, isDeployment), [
      "/spec/replicaz",
      "/spec/template/spec/containers/0/livenessProbe/period"
    ])
  })

  it("select the pods of the deployment", () => {
    const labels = pod.metadata.labels
    assert.deepStrictEqual(deployment.spec.selector.matchLabels, labels)
    assert.deepStrictEqual(read("service.yaml").spec.selector, labels)
    assert.deepStrictEqual(read("pod-disruption-budget.yaml").spec.selector.matchLabels, labels)
    assert.deepStrictEqual(read("network-policy.yaml").spec.podSelector.matchLabels, labels)
    for (const { labelSelector } of pod.spec.topologySpreadConstraints) {
      assert.deepStrictEqual(labelSelector.matchLabels, labels)
    }
    const [port] = container.ports
    assert.strictEqual(read("service.yaml").spec.ports[0].targetPort, port.name)
  })

  it.effect("give a pod enough time to stop, and stop sending requests to it before", () =>
    Effect.map(AppConfig, ({ shutdownDelay, shutdownGrace }) => {
      const [delay, grace] = [shutdownDelay, shutdownGrace].map(Duration.toMillis) as [
        number,
        number
      ]
      // Plus up to 10 seconds for settling
      assert.isAtLeast(pod.spec.terminationGracePeriodSeconds * 1000, delay + grace + 10_000)
      assert.isAtMost(2 * probeMillis(container.readinessProbe), delay)
      assert.strictEqual(container.readinessProbe.httpGet.path, "/readyz")
      // The store may be away or migrating for minutes without a restart
      assert.strictEqual(container.livenessProbe.httpGet.path, "/healthz")
      assert.isAtLeast(probeMillis(container.startupProbe), 600_000)
    }).pipe(Effect.provide(AppConfig.layerOf({})))
  )

  it("run as the image's user without privileges on a read-only file system", () => {
    const [, user] = /^USER (\d+):/mu.exec(readFileSync("Dockerfile", "utf8")) ?? []
    assert.strictEqual(pod.spec.securityContext.runAsUser, Number(user))
    assert.isTrue(pod.spec.securityContext.runAsNonRoot)
    assert.deepInclude(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] }
    })
    assert.isFalse(pod.spec.automountServiceAccountToken)
  })

  it("set only documented variables, and mount the files that they name", () => {
    const known = readFileSync("docs/reference/configuration.md", "utf8")
    const [secrets] = pod.spec.volumes
    const mounted = secrets.secret.items.map(({ path }: { path: string }) => path)
    const { mountPath } = container.volumeMounts[0]
    const keys = Object.keys(read("secret.example.yaml").stringData)
    const used = new Set<string>(secrets.secret.items.map(({ key }: { key: string }) => key))
    for (const { name, value, valueFrom } of container.env) {
      assert.include(known, `\`${name}\``)
      if (name.endsWith("_FILE")) {
        assert.include(
          mounted.map((path: string) => `${mountPath}/${path}`),
          value
        )
      }
      if (valueFrom !== undefined) used.add(valueFrom.secretKeyRef.key)
    }
    assert.sameMembers([...used], keys)
  })
})
