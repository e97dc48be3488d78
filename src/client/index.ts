/**
 * `generation-gateway/client`: a client of the gateway for any JavaScript runtime, without dependencies.
 * docs/client.md
 */
export { GatewayClient } from "./GatewayClient.ts"
export type { ClientOptions } from "./GatewayClient.ts"
export type { ClientClock } from "./Clock.ts"
export {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  GatewayError,
  InsufficientCreditsError,
  NotFoundError,
  PermissionError,
  RateLimitError,
  ServerError,
  TaskFailedError,
  TimeoutError,
  ValidationError
} from "./Errors.ts"
export type { ClientError, Fault } from "./Errors.ts"
export type { EventType, ListenOptions, PublishedEvent } from "./Events.ts"
export { fileFrom } from "./Media.ts"
export type { List, WriteOptions } from "./Requests.ts"
export type { InputOf, ModelName, Task, TaskRef } from "./Task.ts"
export type { CreatedTask, CreateOptions, WaitOptions } from "./Tasks.ts"
export type { RequestOptions } from "./Transport.ts"
export type { Media } from "./schema.ts"
/** The types of request and response bodies: `Api.Wallet`, `Api.TextToImageMax`. */
export type * as Api from "./schema.ts"
