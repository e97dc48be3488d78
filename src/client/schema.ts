/* Generated from schema/openapi.json by `npm run schema`. */
/* oxlint-disable max-lines -- as long as the API */

/**
 * The values of a media field: a string as in the API (a public URL, a data URI or Base64), or the bytes themselves.
 * docs/reference/models.md#media-in-bodies
 */
export type Media = string | Blob | Uint8Array | ArrayBuffer | ReadableStream<Uint8Array>

/** A page of a list. docs/reference/http.md#lists */
export interface Page<T> {
  readonly data: ReadonlyArray<T>
  /** Pass it as `cursor` to get the next page; `null` on the last page. */
  readonly next_cursor: string | null
}

export interface TaskBatch {
  readonly id: string
  readonly status: "in_progress" | "completed"
  readonly counts: { readonly total: number; readonly unfinished: number; readonly completed: number; readonly failed: number }
  readonly receipt: { readonly held: string; readonly captured: string; readonly released: string; readonly currency: "credits" }
  readonly created_at: string
  readonly ended_at: string | null
}

export interface TaskResult {
  readonly task_info: TaskInfo
  readonly images?: ReadonlyArray<string>
  readonly videos?: ReadonlyArray<string>
  readonly audios?: ReadonlyArray<string>
  readonly meshes?: ReadonlyArray<string>
  readonly documents?: ReadonlyArray<string>
  readonly responses?: ReadonlyArray<string>
  readonly batches?: ReadonlyArray<string>
  readonly metadata?: Metadata
}

export type Metadata = Readonly<Record<string, string>>

export interface TaskInfo {
  readonly id: string
  readonly status: "pending" | "processing" | "completed" | "failed"
  readonly created_at: string
  readonly updated_at: string
  readonly error?: TaskError
}

export interface TaskError {
  readonly code: number
  readonly title: string
  readonly detail: string
}

export interface Service {
  readonly name: string
  readonly sandbox: boolean
  readonly oidc: boolean
  readonly passkeys: boolean
  readonly top_up_url: string | null
}

export interface PasskeySignIn {
  readonly challenge: string
  readonly rpId: string
  readonly timeout: number
  readonly userVerification: "required"
}

export interface Session {
  readonly id: string
  readonly user: { readonly id: string; readonly email: string; readonly name: string | null } | null
  readonly role: "user" | "operator"
  readonly method: "password" | "api_key" | "admin_token" | "link" | "oidc" | "passkey"
  readonly current: boolean
  readonly address: string | null
  readonly created_at: string
  readonly last_seen_at: string
  readonly expires_at: string
}

export interface PasskeyAssertion {
  readonly id: string
  readonly rawId: string
  readonly type: "public-key"
  readonly authenticatorAttachment?: "platform" | "cross-platform"
  readonly clientExtensionResults?: Readonly<Record<string, unknown>>
  readonly response: { readonly clientDataJSON: string; readonly authenticatorData: string; readonly signature: string; readonly userHandle?: string | null }
}

export interface SignInLink {
  readonly url: string
  readonly expires_at: string
}

export interface Passkey {
  readonly id: string
  readonly name: string
  readonly created_at: string
  readonly last_used_at: string | null
}

export interface PasskeyAttestation {
  readonly id: string
  readonly rawId: string
  readonly type: "public-key"
  readonly authenticatorAttachment?: "platform" | "cross-platform"
  readonly clientExtensionResults?: Readonly<Record<string, unknown>>
  readonly response: { readonly clientDataJSON: string; readonly attestationObject: string; readonly transports?: ReadonlyArray<string>; readonly publicKeyAlgorithm?: number; readonly publicKey?: string; readonly authenticatorData?: string }
}

export interface PasskeyCreation {
  readonly challenge: string
  readonly rp: { readonly id: string; readonly name: string }
  readonly user: { readonly id: string; readonly name: string; readonly displayName: string }
  readonly pubKeyCredParams: ReadonlyArray<{ readonly type: "public-key"; readonly alg: number }>
  readonly timeout: number
  readonly attestation: "none"
  readonly excludeCredentials: ReadonlyArray<{ readonly type: "public-key"; readonly id: string }>
  readonly authenticatorSelection: { readonly residentKey: "required"; readonly requireResidentKey: boolean; readonly userVerification: "required" }
}

export interface OperatorCall {
  readonly id: string
  readonly vendor: string
  readonly model: string | null
  readonly route: string
  readonly outcome: "settled" | "released" | "lost"
  readonly charged_late: boolean
  readonly http_status: number | null
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly held: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly cost: string
  readonly usage: Readonly<Record<string, unknown>> | null
  readonly account_id: string | null
  readonly time_to_first_token_ms: number | null
  readonly sandbox: boolean
  readonly alias?: string
  readonly skipped?: ReadonlyArray<SkippedModel>
  readonly catalog: string | null
  readonly trace_id: string | null
  readonly created_at: string
  readonly ended_at: string
  readonly user: Owner
}

export interface Owner {
  readonly id: string
  readonly email: string | null
}

export interface SkippedModel {
  readonly vendor: string
  readonly model: string
  readonly reason: "not_sold" | "body" | "sandbox" | "no_route" | "no_account" | "circuit_open" | "rate_limited" | "unavailable" | "account_refused" | "model_gone"
}

export interface OperatorTask {
  readonly id: string
  readonly vendor: string
  readonly model: string
  readonly action: "generation" | "edit" | "responses" | "batches"
  readonly status: "pending" | "processing" | "completed" | "failed"
  readonly sandbox: boolean
  readonly receipt: Receipt
  readonly catalog: string | null
  readonly trace_id: string | null
  readonly created_at: string
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly batch_id?: string
  readonly error: { readonly code: number; readonly title: string } | null
  readonly user: Owner
}

export interface Receipt {
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly held: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly captured: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly released: string
  readonly currency: "credits"
  readonly vendor?: string
  readonly model?: string
  readonly skipped?: ReadonlyArray<SkippedModel>
}

export interface FoundThing {
  readonly type: "user" | "task" | "call" | "api_key" | "session" | "task_batch" | "webhook_endpoint" | "webhook_delivery" | "event"
  readonly id: string
  readonly user: Owner
  readonly created_at: string
}

export interface Queues {
  readonly tasks: { readonly unfinished: number; readonly waiting_for_slot: number; readonly unowned: number; readonly due: number; readonly lateness_ms: number }
  readonly deliveries: { readonly unfinished: number; readonly due: number; readonly in_progress: number; readonly lateness_ms: number }
  readonly wallets: { readonly drift: number; readonly drifting_user_ids: ReadonlyArray<string>; readonly budget_drift: number; readonly audited_at: string | null; readonly budgets_audited_at: string | null }
  readonly store: { readonly restored_at: string | null; readonly trusted_until: string | null; readonly tasks_in_doubt: number }
}

export interface DeletedUser {
  readonly id: string
  /** Always true */
  readonly deleted: boolean
  readonly deleted_at: string
  readonly erased_at: string | null
}

export interface AuditEntry {
  readonly id: string
  readonly type: string
  readonly actor: AuditActor
  readonly user_id: string | null
  readonly resource_id: string | null
  readonly changes: Readonly<Record<string, unknown>>
  readonly trace_id: string | null
  readonly created_at: string
}

export interface AuditActor {
  readonly type: "operator" | "api_key" | "session" | "access_token"
  readonly id: string | null
  readonly user_id: string | null
  readonly ip_address: string | null
}

export interface WebhookDelivery {
  readonly id: string
  readonly endpoint_id: string
  readonly webhook_url: string | null
  readonly event_id: string
  readonly type: "task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed"
  readonly task_id: string | null
  readonly status: "pending" | "delivering" | "succeeded" | "failed" | "skipped"
  readonly attempt_count: number
  readonly next_attempt_at: string | null
  readonly created_at: string
  readonly updated_at: string
}

export interface RedeliveredWebhookDeliveries {
  readonly redelivered: number
  readonly next_cursor: string | null
}

export interface RedeliverWebhookDeliveries {
  readonly filter: RedeliveryFilter
  /** `next_cursor` of the call before */
  readonly cursor?: string
}

export interface RedeliveryFilter {
  readonly endpoint_id?: string
  readonly status?: "succeeded" | "failed" | "skipped"
  readonly type?: "task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed"
  readonly since?: string
  readonly until?: string
}

export interface WebhookDeliveryWithAttempts {
  readonly id: string
  readonly endpoint_id: string
  readonly webhook_url: string | null
  readonly event_id: string
  readonly type: "task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed"
  readonly task_id: string | null
  readonly status: "pending" | "delivering" | "succeeded" | "failed" | "skipped"
  readonly attempt_count: number
  readonly next_attempt_at: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly body: string
  readonly attempts: ReadonlyArray<WebhookAttempt>
}

export interface WebhookAttempt {
  readonly seq: number
  readonly due_at: string
  readonly started_at: string
  readonly ended_at: string | null
  readonly lateness_ms: number
  readonly remote_address: string | null
  readonly status: number | null
  readonly failure: "dns" | "connect" | "tls" | "timeout" | "http_status" | "redirect" | "protocol" | "blocked" | "payload_too_large" | "lost" | null
  readonly detail: string | null
  readonly answer: string | null
}

export interface VendorAccountCheck {
  readonly ok: boolean
  readonly http_status: number | null
  readonly duration_ms: number
  readonly detail: string | null
}

export interface VendorAccount {
  readonly id: string
  readonly provider: string
  readonly base_url: string
  readonly weight: number
  readonly configured: boolean
  readonly status: "active" | "draining"
  readonly draining_since: string | null
  readonly health: "healthy" | "degraded" | "unavailable"
  readonly circuit: "closed" | "half_open" | "open"
  readonly paused_seconds: number
  readonly models: ReadonlyArray<{ readonly model: string; readonly circuit: "closed" | "half_open" | "open"; readonly paused_seconds: number }>
  readonly slots: { readonly limit: number | null; readonly held: number; readonly waiting: number }
  readonly rate: ReadonlyArray<{ readonly name: string; readonly model: string | null; readonly limit: number; readonly used: number; readonly resets_at: string | null }>
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly spend_today: string
  readonly last_fault: { readonly at: string; readonly model: string; readonly http_status: number | null; readonly remedy: string } | null
  readonly failed_check: { readonly at: string; readonly http_status: number | null; readonly detail: string } | null
}

export interface CatalogReload {
  readonly hash: string
  readonly previous_hash: string
  readonly adopted: boolean
  readonly difference: { readonly added: ReadonlyArray<CatalogRowName>; readonly removed: ReadonlyArray<CatalogRowName>; readonly changed: ReadonlyArray<CatalogChange> }
}

export interface CatalogChange {
  readonly type: "media" | "token" | "vendor" | "route" | "alias"
  readonly id: string
  readonly changes: ReadonlyArray<{ readonly pointer: string; readonly before: unknown; readonly after: unknown }>
}

export interface CatalogRowName {
  readonly type: "media" | "token" | "vendor" | "route" | "alias"
  readonly id: string
}

export interface Catalog {
  readonly hash: string
  readonly adopted_at: string | null
  readonly data: ReadonlyArray<CatalogRow>
}

export interface CatalogRow {
  readonly type: "media" | "token" | "vendor" | "route" | "alias"
  readonly id: string
  readonly price: { readonly per: "image"; readonly amount: string } | { readonly per: "second"; readonly amount: string; readonly tiers?: { readonly "480P"?: string; readonly "720P"?: string; readonly "1080P"?: string } } | { readonly per: "call"; readonly amount: string } | { readonly per: "expression"; readonly hold: string; readonly capture?: string } | TokenPrice | UnitPrice
  readonly valid_from: string | null
  readonly valid_until: string | null
  readonly deprecation: string | null
  readonly sunset: string | null
  readonly replacement: string | null
  readonly source: string | null
}

export type UnitPrice = { readonly per: "million_characters"; readonly amount: string } | { readonly per: "minute"; readonly amount: string } | { readonly per: "search"; readonly amount: string }

export interface TokenPrice {
  readonly per: "million_tokens"
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly input: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly output: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly cached_input: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly cache_write: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly cache_write_long: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly reasoning: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly audio_input: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly image_output: string
  readonly batch: string | null
  readonly long: { readonly above: number; readonly input: string; readonly output: string; readonly cached_input: string; readonly cache_write: string; readonly cache_write_long: string; readonly reasoning: string; readonly audio_input: string; readonly image_output: string } | null
  readonly tools: Readonly<Record<string, { readonly per: "use" | "container" | "call"; readonly amount: string; readonly tokens?: { readonly input: string; readonly cached_input: string; readonly image_input: string; readonly cached_image_input: string; readonly output: string } }>>
}

export interface TokenModel {
  readonly type: "token"
  readonly vendor: string
  readonly model: string
  readonly path: string
  readonly sandbox: boolean
  readonly candidates?: ReadonlyArray<{ readonly vendor: string; readonly model: string; readonly weight: number | null }>
  readonly price: TokenPrice | UnitPrice
  readonly valid_from: string | null
  readonly valid_until: string | null
  readonly deprecation: string | null
  readonly sunset: string | null
  readonly replacement: string | null
  readonly source: string | null
  readonly input_tokens_max: number
  readonly output_tokens_max: number
  readonly body_schema: Readonly<Record<string, unknown>>
}

export interface Model {
  readonly type: "media"
  readonly vendor: string
  readonly model: string
  readonly path: string
  readonly sandbox: boolean
  readonly candidates?: ReadonlyArray<{ readonly vendor: string; readonly model: string; readonly weight: number | null }>
  readonly result: "images" | "videos" | "audios" | "meshes" | "documents"
  readonly price: { readonly per: "image"; readonly amount: string } | { readonly per: "second"; readonly amount: string; readonly tiers?: { readonly "480P"?: string; readonly "720P"?: string; readonly "1080P"?: string } } | { readonly per: "call"; readonly amount: string } | { readonly per: "expression"; readonly hold: string; readonly capture?: string }
  readonly valid_from: string | null
  readonly valid_until: string | null
  readonly deprecation: string | null
  readonly sunset: string | null
  readonly replacement: string | null
  readonly source: string | null
  readonly body_schema: Readonly<Record<string, unknown>>
  readonly media: Readonly<Record<string, MediaField>>
}

export interface MediaField {
  readonly kind: "image" | "audio" | "video"
  readonly media_types: ReadonlyArray<string>
  readonly max_bytes: number
  readonly min_side: number | null
  readonly max_side: number | null
  readonly min_seconds: number | null
  readonly max_seconds: number | null
  readonly inline: boolean
}

export interface BatchReceipt {
  readonly custom_id: string | null
  readonly model: string
  readonly outcome: "settled" | "released"
  readonly http_status: number | null
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly cost: string
  readonly usage: Readonly<Record<string, unknown>> | null
  readonly request_id: string | null
  readonly created_at: string
}

export interface TaskTimeline {
  readonly id: string
  readonly vendor: string
  readonly model: string
  readonly action: "generation" | "edit" | "responses" | "batches"
  readonly status: "pending" | "processing" | "completed" | "failed"
  readonly error: TaskError | null
  readonly sandbox: boolean
  readonly receipt: Receipt
  readonly catalog: string | null
  readonly key_name: string | null
  readonly trace_id: string | null
  readonly created_at: string
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly metadata?: Metadata
  readonly batch_id?: string
  readonly body: unknown
  readonly inputs: ReadonlyArray<TaskInput>
  readonly result_kind: "images" | "videos" | "audios" | "meshes" | "documents" | "responses" | "batches"
  readonly result: ReadonlyArray<string> | null
  readonly progress?: number
  readonly candidates?: ReadonlyArray<TaskCandidate>
  readonly moves: ReadonlyArray<TaskMove>
  readonly attempts: ReadonlyArray<VendorAttempt>
  readonly entries: ReadonlyArray<WalletEntry>
  readonly deliveries: ReadonlyArray<TaskDelivery>
}

export interface TaskDelivery {
  readonly id: string
  readonly endpoint_id: string
  readonly webhook_url: string | null
  readonly event_id: string
  readonly type: string
  readonly status: "pending" | "delivering" | "succeeded" | "failed" | "skipped"
  readonly trace_id: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly attempts: ReadonlyArray<{ readonly seq: number; readonly due_at: string | null; readonly started_at: string | null; readonly ended_at: string | null; readonly status: number | null; readonly failure: "dns" | "connect" | "tls" | "timeout" | "http_status" | "redirect" | "protocol" | "blocked" | "payload_too_large" | "lost" | null }>
}

export interface WalletEntry {
  readonly seq: number
  readonly kind: "top_up" | "adjustment" | "hold" | "capture" | "release" | "late_charge"
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly amount: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly settled_after: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly held_after: string
  readonly task_id: string | null
  readonly note: string | null
  readonly trace_id: string | null
  readonly created_at: string
}

export interface VendorAttempt {
  readonly n: number
  readonly vendor: string
  readonly account_id: string
  readonly state: "submitting" | "submitted" | "refused" | "ambiguous"
  readonly failure_class: string | null
  readonly started_at: string
  readonly answered_at: string | null
}

export interface TaskMove {
  readonly status: "pending" | "processing" | "completed" | "failed"
  readonly at: string
  readonly trace_id: string | null
}

export interface TaskCandidate {
  readonly vendor: string
  readonly model: string
  readonly price: string | null
  readonly skipped: { readonly reason: "not_sold" | "body" | "sandbox" | "no_route" | "no_account" | "circuit_open" | "rate_limited" | "unavailable" | "account_refused" | "model_gone"; readonly at: string; readonly attempt: number | null } | null
}

export interface TaskInput {
  readonly pointer: string
  readonly media_type: string
  readonly size: number
  readonly url: string
  readonly expires_at: string
}

export interface TaskListItem {
  readonly id: string
  readonly vendor: string
  readonly model: string
  readonly action: "generation" | "edit" | "responses" | "batches"
  readonly status: "pending" | "processing" | "completed" | "failed"
  readonly error: TaskError | null
  readonly sandbox: boolean
  readonly receipt: Receipt
  readonly catalog: string | null
  readonly key_name: string | null
  readonly trace_id: string | null
  readonly created_at: string
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly metadata?: Metadata
  readonly batch_id?: string
  readonly prompt?: string
  readonly preview?: TaskPreview
}

export interface TaskPreview {
  readonly kind: "images" | "videos"
  readonly url: string
  readonly expires_at: string
  readonly count: number
}

export interface WebhookSecretShown {
  readonly secret: string
  readonly secret_preview: string
  readonly old_secret_expires_at: string | null
}

export interface WebhookSecret {
  readonly secret_preview: string | null
  readonly old_secret_expires_at: string | null
}

export interface WebhookSignatureReport {
  readonly valid: boolean
  readonly findings: ReadonlyArray<{ readonly code: "missing_header" | "malformed_timestamp" | "skew" | "wrong_prefix" | "unknown_delivery" | "other_endpoint" | "bytes_changed" | "old_secret" | "wrong_secret" | "signature_mismatch"; readonly detail: string }>
}

export interface ReceivedWebhookDelivery {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly body_base64?: string
  readonly secret?: string
  readonly received_at?: string
}

export interface RecoveredWebhookDeliveries {
  readonly recovered: number
  readonly has_more: boolean
}

export interface RecoverWebhookDeliveries {
  readonly since: string
}

export interface WebhookEndpointWithSecret {
  readonly id: string
  readonly url: string
  readonly events: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">
  readonly format: "gateway" | "openai"
  readonly description: string | null
  readonly enabled: boolean
  readonly filter: { readonly models?: ReadonlyArray<string>; readonly metadata?: Metadata } | null
  readonly secret: string
  readonly secret_preview: string
  readonly old_secret_expires_at: string | null
  readonly created_at: string
  readonly updated_at: string
}

export interface WebhookEndpoint {
  readonly id: string
  readonly url: string
  readonly events: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">
  readonly format: "gateway" | "openai"
  readonly description: string | null
  readonly enabled: boolean
  readonly filter: { readonly models?: ReadonlyArray<string>; readonly metadata?: Metadata } | null
  readonly secret_preview: string
  readonly old_secret_expires_at: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly health: WebhookEndpointHealth
}

export interface WebhookEndpointHealth {
  readonly status: "unknown" | "healthy" | "failing"
  readonly failed_attempts: number
  readonly failing_since: string | null
  readonly last_attempt: { readonly started_at: string; readonly status: number | null; readonly failure: "dns" | "connect" | "tls" | "timeout" | "http_status" | "redirect" | "protocol" | "blocked" | "payload_too_large" | "lost" | null } | null
}

export interface WebhookEndpointChange {
  readonly url?: string
  readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">
  readonly format?: "gateway" | "openai"
  readonly description?: string | null
  readonly enabled?: boolean
  readonly filter?: WebhookEndpointFilter | null
}

export interface WebhookEndpointFilter {
  readonly models?: ReadonlyArray<string>
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
}

export interface WebhookEndpointActivity {
  readonly hours: ReadonlyArray<{ readonly hour: string; readonly succeeded: number; readonly failed: number; readonly waiting: number; readonly has_more: boolean }>
}

export interface NewWebhookEndpoint {
  readonly url: string
  readonly events: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">
  readonly format?: "gateway" | "openai"
  readonly description?: string | null
  readonly enabled?: boolean
  readonly filter?: WebhookEndpointFilter | null
}

export interface Reconciliation {
  readonly vendor: string
  readonly from: string
  readonly to: string
  readonly lines: number
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly billed: string
  readonly matched: number
  readonly margin: { readonly billed: string; readonly charged: string; readonly margin: string; readonly models: ReadonlyArray<{ readonly model: string; readonly billed: string; readonly charged: string; readonly margin: string }>; readonly days: ReadonlyArray<{ readonly day: string; readonly billed: string; readonly charged: string; readonly margin: string }> }
  readonly bought_not_charged: { readonly count: number; readonly billed: string; readonly data: ReadonlyArray<{ readonly id: string | null; readonly model: string; readonly day: string; readonly billed: string; readonly task_id: string | null; readonly call_id: string | null }> }
  readonly charged_not_bought: { readonly count: number; readonly charged: string; readonly data: ReadonlyArray<{ readonly task_id: string | null; readonly call_id: string | null; readonly model: string; readonly day: string; readonly charged: string }> }
  readonly differences: ReadonlyArray<{ readonly day: string; readonly model: string; readonly billed: string; readonly charged: string; readonly difference: string }>
}

export interface UsageRebuild {
  readonly corrected: number
}

export interface Usage {
  readonly day: string | null
  readonly hour: string | null
  readonly user: string | null
  readonly key: string | null
  readonly vendor: string | null
  readonly model: string | null
  readonly sandbox: boolean | null
  readonly tasks: number
  readonly calls: number
  readonly units: UsageUnits
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly amount: string
  /** Failed tasks, and calls that were released or lost */
  readonly errors: number
  /** Milliseconds that half of the tasks and calls did not exceed, accurate to a sixteenth */
  readonly p50_ms: number | null
  /** Milliseconds that 95 % of the tasks and calls did not exceed, accurate to a sixteenth */
  readonly p95_ms: number | null
}

export interface UsageUnits {
  readonly input_tokens: number
  readonly input_cached_tokens: number
  readonly output_tokens: number
  readonly images: number
  readonly videos: number
  readonly audios: number
  readonly seconds: number
}

export interface Settings {
  readonly keep_calls: boolean
}

export interface CallContent {
  readonly call_id: string
  readonly path: string
  readonly request: CallContentSide | null
  readonly response: CallContentSide | null
}

export interface CallContentSide {
  readonly content_type: string | null
  readonly text: string
  readonly truncated: boolean
  readonly bytes: number
}

export interface Call {
  readonly id: string
  readonly vendor: string
  readonly model: string | null
  readonly route: string
  readonly outcome: "settled" | "released" | "lost"
  readonly charged_late: boolean
  readonly http_status: number | null
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly held: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly cost: string
  readonly usage: Readonly<Record<string, unknown>> | null
  readonly account_id: string | null
  readonly time_to_first_token_ms: number | null
  readonly sandbox: boolean
  readonly alias?: string
  readonly skipped?: ReadonlyArray<SkippedModel>
  readonly catalog: string | null
  readonly trace_id: string | null
  readonly created_at: string
  readonly ended_at: string
}

export interface Wallet {
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly available_balance: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly settled_balance: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly held_balance: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly trigger_threshold: string
  readonly currency: "credits"
  readonly state: "NORMAL" | "ALERTED"
}

export interface RotatedApiKey {
  readonly id: string
  readonly preview: string
  readonly name: string
  readonly scopes: ReadonlyArray<"inference" | "manage">
  readonly created_at: string
  readonly expires_at: string | null
  readonly last_used_at: string | null
  readonly spend_limit: string | null
  readonly reset: "daily" | "weekly" | "monthly" | "never" | null
  readonly spent: string | null
  readonly held: string | null
  readonly remaining: string | null
  readonly resets_at: string | null
  readonly allowed_models: ReadonlyArray<string> | null
  readonly rate_limit_per_minute: number | null
  readonly concurrent_tasks: number | null
  readonly old_key_expires_at: string | null
  readonly key: string
}

export interface ApiKeyRotation {
  /** Seconds for which the old secret works too; 0 ends it at once */
  readonly grace_seconds?: number
}

export interface ApiKey {
  readonly id: string
  readonly preview: string
  readonly name: string
  readonly scopes: ReadonlyArray<"inference" | "manage">
  readonly created_at: string
  readonly expires_at: string | null
  readonly last_used_at: string | null
  readonly spend_limit: string | null
  readonly reset: "daily" | "weekly" | "monthly" | "never" | null
  readonly spent: string | null
  readonly held: string | null
  readonly remaining: string | null
  readonly resets_at: string | null
  readonly allowed_models: ReadonlyArray<string> | null
  readonly rate_limit_per_minute: number | null
  readonly concurrent_tasks: number | null
  readonly old_key_expires_at: string | null
}

export interface ApiKeyChange {
  readonly name?: string
  readonly spend_limit?: string | null
  readonly reset?: "daily" | "weekly" | "monthly" | "never"
  readonly allowed_models?: ReadonlyArray<string> | null
  readonly rate_limit_per_minute?: number | null
  readonly concurrent_tasks?: number | null
  readonly expires_at?: string | null
}

export interface CreatedApiKey {
  readonly id: string
  readonly key: string
  readonly preview: string
  readonly name: string
  readonly scopes: ReadonlyArray<"inference" | "manage">
  readonly created_at: string
  readonly expires_at: string | null
}

export interface NewApiKey {
  readonly name: string
  readonly scopes?: ReadonlyArray<"inference" | "manage">
  readonly spend_limit?: string | null
  readonly reset?: "daily" | "weekly" | "monthly" | "never"
  readonly allowed_models?: ReadonlyArray<string> | null
  readonly rate_limit_per_minute?: number | null
  readonly concurrent_tasks?: number | null
  readonly expires_at?: string | null
}

export interface User {
  readonly id: string
  readonly email: string
  readonly name: string | null
  readonly created_at: string
  readonly disabled: boolean
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly trigger_threshold: string
  readonly rate_limit_per_minute: number | null
  readonly concurrent_tasks: number | null
}

export interface UserChange {
  readonly email?: string
  readonly name?: string | null
  readonly password?: string | null
  readonly disabled?: boolean
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly trigger_threshold?: string
  readonly rate_limit_per_minute?: number | null
  readonly concurrent_tasks?: number | null
}

export interface ListedUser {
  readonly id: string
  readonly email: string
  readonly name: string | null
  readonly created_at: string
  readonly disabled: boolean
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly trigger_threshold: string
  readonly rate_limit_per_minute: number | null
  readonly concurrent_tasks: number | null
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly available_balance: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly settled_balance: string
  /** An amount of credits as a decimal string; 100 credits are 1 US dollar */
  readonly spent_this_month: string
}

/** RFC 9457 with an additional `code`. Each code is explained at its `type` */
export interface Problem {
  /** The explanation of the code; on Anthropic's routes `error` */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly instance: string
  readonly code: 1001 | 1002 | 1003 | 1004 | 1005 | 1006 | 1007 | 1101 | 1102 | 1103 | 1201 | 1202 | 1203 | 2001 | 2002 | 2003 | 2004 | 2005 | 2006 | 2007 | 2008 | 2010 | 2011 | 2012 | 2013 | 2014 | 2015 | 2016 | 2017 | 2018 | 2019 | 2020 | 5000 | 5002 | 5003 | 5004
  /** Every fault of the request, with code 2001 */
  readonly errors?: ReadonlyArray<{ readonly pointer: string; readonly detail: string }>
  /** Credits that the spend limit of the API key leaves, with code 1102 */
  readonly remaining?: string
  /** With the codes 2017 to 2019: the task, which exists */
  readonly task?: { readonly id: string; readonly url: string; readonly status: "pending" | "processing" | "completed" | "failed"; readonly error?: TaskError }
  /** On the routes of OpenAI (`message`, `type`, `param`, `code`), Anthropic (`message`, `type`) and Google (`message`, `code`, `status`), as their own clients read it */
  readonly error?: { readonly message: string; readonly type?: string; readonly param?: string | null; readonly code?: string | number; readonly status?: string }
  /** On Anthropic's routes only: the trace id of the request */
  readonly request_id?: string
}

export interface TaskBatchPage {
  readonly id: string
  readonly status: "in_progress" | "completed"
  readonly counts: { readonly total: number; readonly unfinished: number; readonly completed: number; readonly failed: number }
  readonly receipt: { readonly held: string; readonly captured: string; readonly released: string; readonly currency: "credits" }
  readonly created_at: string
  readonly ended_at: string | null
  /** In the order of the request */
  readonly data: ReadonlyArray<TaskListItem>
  readonly next_cursor: string | null
}

export interface CreatedTaskBatch {
  readonly id: string
  readonly status: "in_progress" | "completed"
  readonly counts: { readonly total: number; readonly unfinished: number; readonly completed: number; readonly failed: number }
  readonly receipt: { readonly held: string; readonly captured: string; readonly released: string; readonly currency: "credits" }
  readonly created_at: string
  readonly ended_at: string | null
  readonly task_ids: ReadonlyArray<string>
}

export interface NewTaskBatch {
  readonly tasks: ReadonlyArray<TaskBatchItem>
}

export interface TaskBatchItem {
  readonly vendor: string
  readonly model: string
  readonly action?: "generation" | "edit"
  /** The body of the create, with `metadata` if there is any */
  readonly body: Readonly<Record<string, unknown>>
}

export interface CreatedTask {
  readonly task_info: { readonly id: string; readonly created_at: string; readonly updated_at: string }
}

export interface Quote {
  readonly quote: { readonly amount: string; readonly currency: "credits"; readonly candidates?: ReadonlyArray<{ readonly vendor: string; readonly model: string; readonly amount: string | null; readonly skipped: "not_sold" | "body" | "sandbox" | "no_route" | "no_account" | "circuit_open" | "rate_limited" | "unavailable" | "account_refused" | "model_gone" | null }> }
}

export interface ImageEditPro {
  /** Editing instruction */
  readonly prompt: string
  /** Pictures to edit */
  readonly images: ReadonlyArray<Media>
  /** Width to height of the result */
  readonly aspect_ratio?: "1:1" | "2:3" | "3:2" | "3:4" | "4:3" | "4:5" | "5:4" | "9:16" | "16:9" | "21:9"
  /** Preset of the longest side */
  readonly resolution?: "1K" | "2K"
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface VideoEditPlus {
  /** What to do */
  readonly function: "image_reference" | "video_repainting" | "video_edit" | "video_extension" | "video_outpainting"
  /** What the video shows, in Chinese or English */
  readonly prompt: string
  /** What the result should not show */
  readonly negative_prompt?: string
  /** Reference pictures */
  readonly images?: ReadonlyArray<Media>
  /** `image_reference`: for each picture, whether it is a subject or the background */
  readonly obj_or_bg?: ReadonlyArray<"obj" | "bg">
  /** The video to work on (MP4, at most 50 MB): public https URL */
  readonly video_url?: string
  /** `video_edit`: white where to edit: public URL, data URI or Base64 */
  readonly mask_image?: Media
  /** `video_edit`: the frame that the mask belongs to */
  readonly mask_frame_id?: number
  /** `video_edit`: a mask for each frame: public https URL */
  readonly mask_video_url?: string
  readonly mask_type?: "tracking" | "fixed"
  readonly expand_ratio?: number
  readonly expand_mode?: "hull" | "bbox" | "original"
  /** What to keep of the video's motion */
  readonly control_condition?: "posebodyface" | "posebody" | "depth" | "scribble"
  /** How closely to follow `control_condition` */
  readonly strength?: number
  /** `video_extension`: starts with this: public URL, data URI or Base64 */
  readonly first_frame?: Media
  /** `video_extension`: ends with this: public URL, data URI or Base64 */
  readonly last_frame?: Media
  /** `video_extension`: starts with this: public https URL */
  readonly first_clip_url?: string
  /** `video_extension`: ends with this: public https URL */
  readonly last_clip_url?: string
  /** `video_outpainting`: how far to grow to the top */
  readonly top_scale?: number
  /** `video_outpainting`: how far to grow to the bottom */
  readonly bottom_scale?: number
  /** `video_outpainting`: how far to grow to the left */
  readonly left_scale?: number
  /** `video_outpainting`: how far to grow to the right */
  readonly right_scale?: number
  /** `width*height` */
  readonly size?: "1280*720" | "720*1280" | "960*960" | "1088*832" | "832*1088"
  /** Seconds; only 5 */
  readonly duration?: 5
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface ImageToVideoSpark {
  /** Motion and story */
  readonly prompt: string
  /** First frame (JPEG, PNG without transparency, BMP or WEBP): public URL, data URI or Base64 */
  readonly image: Media
  /** What the result should not show */
  readonly negative_prompt?: string
  /** Automatic audio; `false` forces silent output */
  readonly audio?: boolean | null
  /** Custom audio, overrides `audio`: WAV or MP3, 3 to 30 seconds, at most 15 MB, as a public https URL, data URI or Base64 */
  readonly audio_url?: Media | null
  /** Tier of the video; affects the cost */
  readonly resolution?: "480P" | "720P" | "1080P"
  /** Seconds; absent means 5 */
  readonly duration?: 5 | 10
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface TextToImagePreview {
  /** What the image shows, in Chinese or English */
  readonly prompt: string
  /** What the result should not show */
  readonly negative_prompt?: string
  /** `width*height`; total pixels between 768*768 and 1440*1440, aspect ratio between 1:4 and 4:1; `null` leaves the choice to the model */
  readonly size?: string | null
  /** How many images; affects the cost */
  readonly n?: number
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface ImageEditMax {
  /** What to do with the pictures, in Chinese or English */
  readonly prompt: string
  /** Pictures to edit (JPEG, PNG, BMP or WEBP), in order; the last one sets the aspect ratio */
  readonly images: ReadonlyArray<Media>
  /** What the result should not show */
  readonly negative_prompt?: string
  /** `width*height`, each 512 to 2048; absent or `null` keeps the last picture's shape near 1024*1024 */
  readonly size?: string | null
  /** How many images; affects the cost */
  readonly n?: number
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface TextToImageMax {
  /** What the image shows, in Chinese or English */
  readonly prompt: string
  /** What the image should not show */
  readonly negative_prompt?: string | null
  /** `width*height`: 16:9, 4:3, 1:1, 3:4, 9:16 */
  readonly size?: "1664*928" | "1472*1104" | "1328*1328" | "1104*1472" | "928*1664"
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface ImageEdit {
  /** What to do with the pictures */
  readonly prompt: string
  /** Reference pictures (JPEG, PNG, BMP or WEBP) */
  readonly images: ReadonlyArray<Media>
  /** What the result should not show */
  readonly negative_prompt?: string
  /** `width*height`; total pixels between 768*768 and 1440*1440, aspect ratio between 1:4 and 4:1; `null` leaves the choice to the model */
  readonly size?: string | null
  /** How many images; affects the cost */
  readonly n?: number
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface KeyframeToVideoPlus {
  /** Transition and motion */
  readonly prompt: string
  /** First keyframe (JPEG, PNG without transparency, BMP or WEBP): public URL, data URI or Base64 */
  readonly image: Media
  /** Last keyframe, same constraints: public URL, data URI or Base64 */
  readonly last_frame: Media
  /** What the result should not show */
  readonly negative_prompt?: string
  /** Name of a video effect template */
  readonly template?: string | null
  /** Only `720P` */
  readonly resolution?: "720P"
  /** Seconds; only 5 */
  readonly duration?: 5
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

export interface TextToVideoSpark {
  /** What the video shows */
  readonly prompt: string
  /** What the result should not show */
  readonly negative_prompt?: string
  /** Automatic audio; `false` forces silent output */
  readonly audio?: boolean | null
  /** Custom audio, overrides `audio`: WAV or MP3, 3 to 30 seconds, at most 15 MB, as a public https URL, data URI or Base64. If shorter than the video the rest is silent, if longer it is cut */
  readonly audio_url?: Media | null
  /** `width*height`; the first five are the 720P tier, the others the 1080P tier */
  readonly size?: "1280*720" | "720*1280" | "960*960" | "1088*832" | "832*1088" | "1920*1080" | "1080*1920" | "1440*1440" | "1632*1248" | "1248*1632"
  /** Seconds; absent means 5 */
  readonly duration?: 5 | 10
  /** Rewrites the prompt for a better result; takes slightly longer */
  readonly prompt_extend?: boolean
  /** Start of the random numbers; the same seed does not guarantee the same output */
  readonly seed?: number
  /** `false` disables content safety inspection */
  readonly safety_filter?: boolean | null
  /** Pairs of strings that are returned with the task and can be used as filters */
  readonly metadata?: Readonly<Record<string, string>>
  /** Where the events of this task are sent */
  readonly webhook?: { readonly url: string; readonly events?: ReadonlyArray<"task.created" | "task.succeeded" | "task.failed" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed">; readonly format?: "gateway" | "openai" }
}

/** All schemas by name. */
export interface Schemas {
  readonly TaskBatch: TaskBatch
  readonly TaskResult: TaskResult
  readonly Metadata: Metadata
  readonly TaskInfo: TaskInfo
  readonly TaskError: TaskError
  readonly Service: Service
  readonly PasskeySignIn: PasskeySignIn
  readonly Session: Session
  readonly PasskeyAssertion: PasskeyAssertion
  readonly SignInLink: SignInLink
  readonly Passkey: Passkey
  readonly PasskeyAttestation: PasskeyAttestation
  readonly PasskeyCreation: PasskeyCreation
  readonly OperatorCall: OperatorCall
  readonly Owner: Owner
  readonly SkippedModel: SkippedModel
  readonly OperatorTask: OperatorTask
  readonly Receipt: Receipt
  readonly FoundThing: FoundThing
  readonly Queues: Queues
  readonly DeletedUser: DeletedUser
  readonly AuditEntry: AuditEntry
  readonly AuditActor: AuditActor
  readonly WebhookDelivery: WebhookDelivery
  readonly RedeliveredWebhookDeliveries: RedeliveredWebhookDeliveries
  readonly RedeliverWebhookDeliveries: RedeliverWebhookDeliveries
  readonly RedeliveryFilter: RedeliveryFilter
  readonly WebhookDeliveryWithAttempts: WebhookDeliveryWithAttempts
  readonly WebhookAttempt: WebhookAttempt
  readonly VendorAccountCheck: VendorAccountCheck
  readonly VendorAccount: VendorAccount
  readonly CatalogReload: CatalogReload
  readonly CatalogChange: CatalogChange
  readonly CatalogRowName: CatalogRowName
  readonly Catalog: Catalog
  readonly CatalogRow: CatalogRow
  readonly UnitPrice: UnitPrice
  readonly TokenPrice: TokenPrice
  readonly TokenModel: TokenModel
  readonly Model: Model
  readonly MediaField: MediaField
  readonly BatchReceipt: BatchReceipt
  readonly TaskTimeline: TaskTimeline
  readonly TaskDelivery: TaskDelivery
  readonly WalletEntry: WalletEntry
  readonly VendorAttempt: VendorAttempt
  readonly TaskMove: TaskMove
  readonly TaskCandidate: TaskCandidate
  readonly TaskInput: TaskInput
  readonly TaskListItem: TaskListItem
  readonly TaskPreview: TaskPreview
  readonly WebhookSecretShown: WebhookSecretShown
  readonly WebhookSecret: WebhookSecret
  readonly WebhookSignatureReport: WebhookSignatureReport
  readonly ReceivedWebhookDelivery: ReceivedWebhookDelivery
  readonly RecoveredWebhookDeliveries: RecoveredWebhookDeliveries
  readonly RecoverWebhookDeliveries: RecoverWebhookDeliveries
  readonly WebhookEndpointWithSecret: WebhookEndpointWithSecret
  readonly WebhookEndpoint: WebhookEndpoint
  readonly WebhookEndpointHealth: WebhookEndpointHealth
  readonly WebhookEndpointChange: WebhookEndpointChange
  readonly WebhookEndpointFilter: WebhookEndpointFilter
  readonly WebhookEndpointActivity: WebhookEndpointActivity
  readonly NewWebhookEndpoint: NewWebhookEndpoint
  readonly Reconciliation: Reconciliation
  readonly UsageRebuild: UsageRebuild
  readonly Usage: Usage
  readonly UsageUnits: UsageUnits
  readonly Settings: Settings
  readonly CallContent: CallContent
  readonly CallContentSide: CallContentSide
  readonly Call: Call
  readonly Wallet: Wallet
  readonly RotatedApiKey: RotatedApiKey
  readonly ApiKeyRotation: ApiKeyRotation
  readonly ApiKey: ApiKey
  readonly ApiKeyChange: ApiKeyChange
  readonly CreatedApiKey: CreatedApiKey
  readonly NewApiKey: NewApiKey
  readonly User: User
  readonly UserChange: UserChange
  readonly ListedUser: ListedUser
  readonly Problem: Problem
  readonly TaskBatchPage: TaskBatchPage
  readonly CreatedTaskBatch: CreatedTaskBatch
  readonly NewTaskBatch: NewTaskBatch
  readonly TaskBatchItem: TaskBatchItem
  readonly CreatedTask: CreatedTask
  readonly Quote: Quote
  readonly ImageEditPro: ImageEditPro
  readonly VideoEditPlus: VideoEditPlus
  readonly ImageToVideoSpark: ImageToVideoSpark
  readonly TextToImagePreview: TextToImagePreview
  readonly ImageEditMax: ImageEditMax
  readonly TextToImageMax: TextToImageMax
  readonly ImageEdit: ImageEdit
  readonly KeyframeToVideoPlus: KeyframeToVideoPlus
  readonly TextToVideoSpark: TextToVideoSpark
}

/** The bodies of creates, by model. docs/reference/models.md#labels */
export interface ModelInputs {
  readonly "text-to-video-spark": TextToVideoSpark
  readonly "keyframe-to-video-plus": KeyframeToVideoPlus
  readonly "image-edit": ImageEdit
  readonly "text-to-image-max": TextToImageMax
  readonly "image-edit-max": ImageEditMax
  readonly "text-to-image-preview": TextToImagePreview
  readonly "image-to-video-spark": ImageToVideoSpark
  readonly "video-edit-plus": VideoEditPlus
  readonly "image-edit-pro": ImageEditPro
}

/** The paths of the models of the built-in catalog. */
export const builtInModels: {
  readonly [Model in keyof ModelInputs]: {
    readonly vendor: string
    readonly action: "generation" | "edit"
  }
} = {
  "text-to-video-spark": { vendor: "service", action: "generation" },
  "keyframe-to-video-plus": { vendor: "alibaba", action: "generation" },
  "image-edit": { vendor: "alibaba", action: "generation" },
  "text-to-image-max": { vendor: "alibaba", action: "generation" },
  "image-edit-max": { vendor: "alibaba", action: "generation" },
  "text-to-image-preview": { vendor: "alibaba", action: "generation" },
  "image-to-video-spark": { vendor: "alibaba", action: "generation" },
  "video-edit-plus": { vendor: "alibaba", action: "generation" },
  "image-edit-pro": { vendor: "google", action: "edit" }
}

/** The management API. docs/reference/http.md#management-api */
export interface Operations {
  /** List batches, newest first */
  readonly "GET /manage/v1/task-batches": {
    readonly query?: { readonly cursor?: string; readonly limit?: number }
    readonly response: Page<TaskBatch>
  }
  /** Create up to 1,000 tasks of any models: all, or none */
  readonly "POST /manage/v1/task-batches": {
    readonly body: NewTaskBatch
    readonly response: CreatedTaskBatch
  }
  /** Get a batch: its counts, its money and a page of its tasks */
  readonly "GET /manage/v1/task-batches/{id}": {
    readonly path: { readonly id: string }
    readonly query?: { readonly cursor?: string; readonly limit?: number }
    readonly response: TaskBatchPage
  }
  /** Cancel the tasks of a batch that have not ended */
  readonly "POST /manage/v1/task-batches/{id}/cancel": {
    readonly path: { readonly id: string }
    readonly response: TaskBatch
  }
  /** List users */
  readonly "GET /manage/v1/users": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly q?: string; readonly state?: "active" | "disabled" | "alerted" | "negative"; readonly sort?: "newest" | "balance" | "spent" }
    readonly response: Page<ListedUser>
  }
  /** Create user */
  readonly "POST /manage/v1/users": {
    readonly body: { readonly email: string; readonly name?: string | null; readonly password?: string }
    readonly response: User
  }
  /** Get user */
  readonly "GET /manage/v1/users/{id}": {
    readonly path: { readonly id: string }
    readonly response: User
  }
  /** Update user */
  readonly "PATCH /manage/v1/users/{id}": {
    readonly path: { readonly id: string }
    readonly body: UserChange
    readonly response: User
  }
  /** Delete user */
  readonly "DELETE /manage/v1/users/{id}": {
    readonly path: { readonly id: string }
    readonly response: DeletedUser
  }
  /** Create user api key */
  readonly "POST /manage/v1/users/{id}/api-keys": {
    readonly path: { readonly id: string }
    readonly body: NewApiKey
    readonly response: CreatedApiKey
  }
  /** Top up */
  readonly "POST /manage/v1/users/{id}/top-ups": {
    readonly path: { readonly id: string }
    readonly body: { readonly amount: string; readonly note?: string | null }
    readonly response: Wallet
  }
  /** Adjust */
  readonly "POST /manage/v1/users/{id}/adjustments": {
    readonly path: { readonly id: string }
    readonly body: { readonly amount: string; readonly note: string }
    readonly response: Wallet
  }
  /** List api keys */
  readonly "GET /manage/v1/api-keys": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string }
    readonly response: Page<ApiKey>
  }
  /** Create api key */
  readonly "POST /manage/v1/api-keys": {
    readonly body: NewApiKey
    readonly response: CreatedApiKey
  }
  /** Get api key */
  readonly "GET /manage/v1/api-keys/{id}": {
    readonly path: { readonly id: string }
    readonly query?: { readonly user_id?: string }
    readonly response: ApiKey
  }
  /** Update api key */
  readonly "PATCH /manage/v1/api-keys/{id}": {
    readonly path: { readonly id: string }
    readonly body: ApiKeyChange
    readonly response: ApiKey
  }
  /** Revoke api key */
  readonly "DELETE /manage/v1/api-keys/{id}": {
    readonly path: { readonly id: string }
    readonly response: undefined
  }
  /** Rotate api key */
  readonly "POST /manage/v1/api-keys/{id}/rotate": {
    readonly path: { readonly id: string }
    readonly body?: ApiKeyRotation
    readonly response: RotatedApiKey
  }
  /** Get wallet */
  readonly "GET /manage/v1/wallet": {
    readonly query?: { readonly user_id?: string }
    readonly response: Wallet
  }
  /** Update wallet */
  readonly "PATCH /manage/v1/wallet": {
    readonly body: { readonly trigger_threshold: string }
    readonly response: Wallet
  }
  /** List wallet entries */
  readonly "GET /manage/v1/wallet/entries": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly kind?: "top_up" | "adjustment" | "hold" | "capture" | "release" | "late_charge"; readonly task_id?: string; readonly since?: string; readonly until?: string; readonly trace_id?: string; readonly min_amount?: string; readonly max_amount?: string; readonly user_id?: string }
    readonly response: Page<WalletEntry>
  }
  /** Get user wallet */
  readonly "GET /manage/v1/users/{id}/wallet": {
    readonly path: { readonly id: string }
    readonly response: Wallet
  }
  /** List user wallet entries */
  readonly "GET /manage/v1/users/{id}/wallet/entries": {
    readonly path: { readonly id: string }
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly kind?: "top_up" | "adjustment" | "hold" | "capture" | "release" | "late_charge"; readonly task_id?: string; readonly since?: string; readonly until?: string; readonly trace_id?: string; readonly min_amount?: string; readonly max_amount?: string }
    readonly response: Page<WalletEntry>
  }
  /** List calls */
  readonly "GET /manage/v1/calls": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string; readonly since?: string; readonly until?: string; readonly trace_id?: string; readonly min_cost?: string; readonly max_cost?: string; readonly outcome?: "settled" | "released" | "lost"; readonly api_key_id?: string; readonly vendor?: string; readonly model?: string }
    readonly response: Page<Call>
  }
  /** Get call */
  readonly "GET /manage/v1/calls/{id}": {
    readonly path: { readonly id: string }
    readonly query?: { readonly user_id?: string }
    readonly response: Call
  }
  /** Get call content */
  readonly "GET /manage/v1/calls/{id}/content": {
    readonly path: { readonly id: string }
    readonly query?: { readonly user_id?: string }
    readonly response: CallContent
  }
  /** Get settings */
  readonly "GET /manage/v1/settings": {
    readonly query?: { readonly user_id?: string }
    readonly response: Settings
  }
  /** Update settings */
  readonly "PATCH /manage/v1/settings": {
    readonly body: Settings
    readonly response: Settings
  }
  /** List usage */
  readonly "GET /manage/v1/usage": {
    readonly query?: { readonly from?: string; readonly to?: string; readonly group_by?: string; readonly user_id?: string; readonly api_key_id?: string; readonly vendor?: string; readonly model?: string; readonly sandbox?: "true" | "false"; readonly sort?: "group" | "amount"; readonly cursor?: string; readonly limit?: number }
    readonly response: Page<Usage>
  }
  /** Rebuild usage */
  readonly "POST /manage/v1/usage/rebuild": {
    readonly body: { readonly from: string; readonly to: string; readonly user_id?: string }
    readonly response: UsageRebuild
  }
  /** Reconcile bill */
  readonly "POST /manage/v1/reconciliations": {
    readonly body: { readonly vendor: "openai" | "dashscope" | "gemini" | "fal" | "replicate" | "anthropic"; readonly bill: string; readonly columns?: { readonly id?: string; readonly model?: string; readonly date?: string; readonly amount?: string } }
    readonly response: Reconciliation
  }
  /** List webhook endpoints */
  readonly "GET /manage/v1/webhook-endpoints": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string }
    readonly response: Page<WebhookEndpoint>
  }
  /** Create webhook endpoint */
  readonly "POST /manage/v1/webhook-endpoints": {
    readonly body: NewWebhookEndpoint
    readonly response: WebhookEndpointWithSecret
  }
  /** Get webhook endpoint */
  readonly "GET /manage/v1/webhook-endpoints/{id}": {
    readonly path: { readonly id: string }
    readonly query?: { readonly user_id?: string }
    readonly response: WebhookEndpoint
  }
  /** Update webhook endpoint */
  readonly "PATCH /manage/v1/webhook-endpoints/{id}": {
    readonly path: { readonly id: string }
    readonly body: WebhookEndpointChange
    readonly response: WebhookEndpoint
  }
  /** Delete webhook endpoint */
  readonly "DELETE /manage/v1/webhook-endpoints/{id}": {
    readonly path: { readonly id: string }
    readonly response: undefined
  }
  /** Get webhook endpoint activity */
  readonly "GET /manage/v1/webhook-endpoints/{id}/activity": {
    readonly path: { readonly id: string }
    readonly query?: { readonly user_id?: string }
    readonly response: WebhookEndpointActivity
  }
  /** Rotate webhook endpoint */
  readonly "POST /manage/v1/webhook-endpoints/{id}/rotate": {
    readonly path: { readonly id: string }
    readonly response: WebhookEndpointWithSecret
  }
  /** Test webhook endpoint */
  readonly "POST /manage/v1/webhook-endpoints/{id}/test": {
    readonly path: { readonly id: string }
    readonly response: { readonly event_id: string; readonly delivery_id: string }
  }
  /** Recover webhook endpoint */
  readonly "POST /manage/v1/webhook-endpoints/{id}/recover": {
    readonly path: { readonly id: string }
    readonly body: RecoverWebhookDeliveries
    readonly response: RecoveredWebhookDeliveries
  }
  /** Debug webhook signature */
  readonly "POST /manage/v1/webhook-endpoints/{id}/debug-signature": {
    readonly path: { readonly id: string }
    readonly body: ReceivedWebhookDelivery
    readonly response: WebhookSignatureReport
  }
  /** Get webhook secret */
  readonly "GET /manage/v1/webhook-secret": {
    readonly query?: { readonly user_id?: string }
    readonly response: WebhookSecret
  }
  /** Rotate webhook secret */
  readonly "POST /manage/v1/webhook-secret/rotate": {
    readonly response: WebhookSecretShown
  }
  /** List tasks */
  readonly "GET /manage/v1/tasks": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly since?: string; readonly until?: string; readonly trace_id?: string; readonly min_cost?: string; readonly max_cost?: string; readonly user_id?: string; readonly q?: string; readonly result_kind?: "images" | "videos" | "audios" | "meshes" | "documents" | "responses" | "batches"; readonly status?: "pending" | "processing" | "completed" | "failed"; readonly api_key_id?: string; readonly model?: string; readonly vendor?: string; readonly metadata?: Readonly<Record<string, string>> }
    readonly response: Page<TaskListItem>
  }
  /** Get task */
  readonly "GET /manage/v1/tasks/{id}": {
    readonly path: { readonly id: string }
    readonly query?: { readonly user_id?: string }
    readonly response: TaskTimeline
  }
  /** List task receipts */
  readonly "GET /manage/v1/tasks/{id}/receipts": {
    readonly path: { readonly id: string }
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string }
    readonly response: Page<BatchReceipt>
  }
  /** List models */
  readonly "GET /manage/v1/models": {
    readonly query?: { readonly cursor?: string; readonly limit?: number }
    readonly response: Page<Model | TokenModel>
  }
  /** Get catalog */
  readonly "GET /manage/v1/catalog": {
    readonly query?: { readonly hash?: string; readonly at?: string }
    readonly response: Catalog
  }
  /** Reload catalog */
  readonly "POST /manage/v1/catalog/reload": {
    readonly query?: { readonly dry_run?: "true" | "false" }
    readonly response: CatalogReload
  }
  /** List accounts */
  readonly "GET /manage/v1/accounts": {
    readonly response: Page<VendorAccount>
  }
  /** Drain account */
  readonly "POST /manage/v1/accounts/{id}/drain": {
    readonly path: { readonly id: string }
    readonly response: VendorAccount
  }
  /** Resume account */
  readonly "POST /manage/v1/accounts/{id}/resume": {
    readonly path: { readonly id: string }
    readonly response: VendorAccount
  }
  /** Check account */
  readonly "POST /manage/v1/accounts/{id}/check": {
    readonly path: { readonly id: string }
    readonly response: VendorAccountCheck
  }
  /** List webhook deliveries */
  readonly "GET /manage/v1/webhook-deliveries": {
    readonly query?: { readonly endpoint_id?: string; readonly task_id?: string; readonly since?: string; readonly until?: string; readonly trace_id?: string; readonly status?: "pending" | "delivering" | "succeeded" | "failed" | "skipped"; readonly type?: "task.created" | "task.succeeded" | "task.failed" | "task_batch.completed" | "balance.low" | "webhook.failing" | "key.expiring" | "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "batch.completed" | "batch.failed" | "batch.expired" | "batch.cancelled" | "video.completed" | "video.failed"; readonly cursor?: string; readonly limit?: number; readonly user_id?: string }
    readonly response: Page<WebhookDelivery>
  }
  /** Get webhook delivery */
  readonly "GET /manage/v1/webhook-deliveries/{id}": {
    readonly path: { readonly id: string }
    readonly query?: { readonly user_id?: string }
    readonly response: WebhookDeliveryWithAttempts
  }
  /** Redeliver webhook deliveries */
  readonly "POST /manage/v1/webhook-deliveries/redeliver": {
    readonly body: RedeliverWebhookDeliveries
    readonly response: RedeliveredWebhookDeliveries
  }
  /** Redeliver webhook delivery */
  readonly "POST /manage/v1/webhook-deliveries/{id}/redeliver": {
    readonly path: { readonly id: string }
    readonly response: WebhookDelivery
  }
  /** List audit log */
  readonly "GET /manage/v1/audit-log": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string; readonly type?: string; readonly actor_id?: string; readonly resource_id?: string; readonly since?: string; readonly until?: string }
    readonly response: Page<AuditEntry>
  }
  /** Export user */
  readonly "GET /manage/v1/users/{id}/export": {
    readonly path: { readonly id: string }
    readonly response: string
  }
  /** Get queues */
  readonly "GET /manage/v1/queues": {
    readonly response: Queues
  }
  /** Search */
  readonly "GET /manage/v1/operator/search": {
    readonly query: { readonly q: string }
    readonly response: { readonly data: ReadonlyArray<FoundThing> }
  }
  /** List all tasks */
  readonly "GET /manage/v1/operator/tasks": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string; readonly since?: string; readonly until?: string; readonly trace_id?: string; readonly min_cost?: string; readonly max_cost?: string; readonly vendor?: string; readonly model?: string; readonly status?: "pending" | "processing" | "completed" | "failed"; readonly result_kind?: "images" | "videos" | "audios" | "meshes" | "documents" | "responses" | "batches" }
    readonly response: Page<OperatorTask>
  }
  /** List all calls */
  readonly "GET /manage/v1/operator/calls": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string; readonly since?: string; readonly until?: string; readonly trace_id?: string; readonly min_cost?: string; readonly max_cost?: string; readonly vendor?: string; readonly model?: string; readonly outcome?: "settled" | "released" | "lost" }
    readonly response: Page<OperatorCall>
  }
  /** Get session */
  readonly "GET /manage/v1/session": {
    readonly response: Session
  }
  /** Sign in */
  readonly "POST /manage/v1/session": {
    readonly body: { readonly email?: string; readonly password?: string; readonly api_key?: string; readonly operator_token?: string; readonly link?: string; readonly passkey?: PasskeyAssertion }
    readonly response: Session
  }
  /** Sign out */
  readonly "DELETE /manage/v1/session": {
    readonly response: undefined
  }
  /** Change password */
  readonly "POST /manage/v1/session/password": {
    readonly body: { readonly current_password?: string; readonly password: string }
    readonly response: Session
  }
  /** Get passkey creation */
  readonly "GET /manage/v1/passkeys/options": {
    readonly response: PasskeyCreation
  }
  /** List passkeys */
  readonly "GET /manage/v1/passkeys": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string }
    readonly response: Page<Passkey>
  }
  /** Create passkey */
  readonly "POST /manage/v1/passkeys": {
    readonly body: { readonly name: string; readonly credential: PasskeyAttestation; readonly current_password?: string }
    readonly response: Passkey
  }
  /** Delete passkey */
  readonly "DELETE /manage/v1/passkeys/{id}": {
    readonly path: { readonly id: string }
    readonly response: undefined
  }
  /** List sessions */
  readonly "GET /manage/v1/sessions": {
    readonly query?: { readonly cursor?: string; readonly limit?: number; readonly user_id?: string }
    readonly response: Page<Session>
  }
  /** Revoke session */
  readonly "DELETE /manage/v1/sessions/{id}": {
    readonly path: { readonly id: string }
    readonly response: undefined
  }
  /** Create sign in link */
  readonly "POST /manage/v1/users/{id}/sign-in-links": {
    readonly path: { readonly id: string }
    readonly response: SignInLink
  }
  /** Get passkey sign in */
  readonly "GET /manage/v1/session/passkey": {
    readonly response: PasskeySignIn
  }
  /** Get service */
  readonly "GET /manage/v1/service": {
    readonly response: Service
  }
}

/** The GET of these paths takes `user_id`, with which the operator reads a user's data. */
export const pathsOfUser: ReadonlyArray<string> = ["/manage/v1/api-keys", "/manage/v1/api-keys/{id}", "/manage/v1/wallet", "/manage/v1/wallet/entries", "/manage/v1/calls", "/manage/v1/calls/{id}", "/manage/v1/calls/{id}/content", "/manage/v1/settings", "/manage/v1/usage", "/manage/v1/webhook-endpoints", "/manage/v1/webhook-endpoints/{id}", "/manage/v1/webhook-endpoints/{id}/activity", "/manage/v1/webhook-secret", "/manage/v1/tasks", "/manage/v1/tasks/{id}", "/manage/v1/tasks/{id}/receipts", "/manage/v1/webhook-deliveries", "/manage/v1/webhook-deliveries/{id}", "/manage/v1/audit-log", "/manage/v1/operator/tasks", "/manage/v1/operator/calls", "/manage/v1/passkeys", "/manage/v1/sessions", "/manage/v1/events"]
