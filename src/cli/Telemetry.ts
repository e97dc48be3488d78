import { Effect, Layer, Option, Semaphore } from "effect"
import { FetchHttpClient, HttpClient, HttpClientError } from "effect/http"
import { Otlp } from "effect/observability"
import { AppConfig } from "../config/Config.ts"

/** The maximum number of concurrent exports, so that a slow or silent collector does not fill the memory. */
const exportsMax = 16
const exportMillis = 10_000

/**
 * Beyond the maximum, an export fails with an error that the exporter does not retry; the exporter then pauses for a
 * minute. ADR 0223.
 */
export const bounded = (client: HttpClient.HttpClient): HttpClient.HttpClient => {
  const slots = Semaphore.makeUnsafe(exportsMax)
  return HttpClient.transform(client, (sent, request) =>
    Effect.timeoutOption(sent, exportMillis).pipe(
      slots.withPermitsIfAvailable(1),
      Effect.map(Option.flatten),
      Effect.flatMap(
        Option.match({
          onSome: Effect.succeed,
          onNone: () =>
            Effect.fail(
              new HttpClientError.HttpClientError({
                reason: new HttpClientError.EncodeError({
                  request,
                  description: "The collector is too slow"
                })
              })
            )
        })
      )
    )
  )
}

/**
 * Exports traces, metrics and logs to `OTEL_EXPORTER_OTLP_ENDPOINT`. Secrets are removed from traces.
 * docs/reference/configuration.md#telemetry
 */
export const layer = Layer.unwrap(
  Effect.map(AppConfig, ({ otlpEndpoint, serviceName }) =>
    Option.match(otlpEndpoint, {
      onNone: () => Layer.empty,
      onSome: (baseUrl) =>
        Otlp.layerJson({ baseUrl, resource: { serviceName } }).pipe(
          Layer.provide(
            Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, bounded))
          ),
          Layer.provide(FetchHttpClient.layer)
        )
    })
  )
)
