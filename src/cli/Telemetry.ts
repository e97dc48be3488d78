import { Effect, Layer, Option, Semaphore } from "effect"
import { FetchHttpClient, HttpClient, HttpClientError } from "effect/http"
import { Otlp } from "effect/observability"
import { AppConfig } from "../config/Config.ts"

/** Exports under way at once. A collector that answers late, or never, does not fill the memory. */
const exportsMax = 16
const exportMillis = 10_000

/** Gives up, and for good, what the exporter would try again. It then pauses for a minute. */
export const bounded = (client: HttpClient.HttpClient): HttpClient.HttpClient => {
  const places = Semaphore.makeUnsafe(exportsMax)
  return HttpClient.transform(client, (sent, request) =>
    Effect.timeoutOption(sent, exportMillis).pipe(
      places.withPermitsIfAvailable(1),
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
 * `OTEL_EXPORTER_OTLP_ENDPOINT`: traces, metrics and logs go to a collector too. Contract 9. What no
 * trace may hold is left out by `http/server/Redaction`.
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
