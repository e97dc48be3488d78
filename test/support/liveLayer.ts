import { layer } from "@effect/vitest"
import type { Duration, Layer } from "effect"

/** Tests that share the services of a layer and have the real clock. `timeout` is that of the layer's start. */
export const liveLayer = <R, E>(
  services: Layer.Layer<R, E>,
  timeout: Duration.Input = "60 seconds"
) => layer(services, { timeout, excludeTestServices: true })
