/* Made from schema/openapi.json by `npm run console`. */

type Headers_ = { [name: string]: unknown }
type Failure = { headers: Headers_; content: { "application/problem+json": Schemas["Problem"] } }

export interface Schemas {
  Metadata: Readonly<Record<string, string>>
  TaskError: { readonly "code": number; readonly "title": string; readonly "detail": string }
  Service: { readonly "name": string; readonly "sandbox": boolean; readonly "oidc": boolean }
  Session: { readonly "id": string; readonly "user": { readonly "id": string; readonly "email": string; readonly "name": string | null } | null; readonly "role": "user" | "operator"; readonly "method": "password" | "api_key" | "admin_token" | "link" | "oidc"; readonly "current": boolean; readonly "address": string | null; readonly "created_at": string; readonly "last_seen_at": string; readonly "expires_at": string }
  SignInLink: { readonly "url": string; readonly "expires_at": string }
  Queues: { readonly "tasks": { readonly "unfinished": number; readonly "waiting_for_slot": number; readonly "unowned": number; readonly "due": number; readonly "lateness_ms": number }; readonly "deliveries": { readonly "unfinished": number; readonly "due": number; readonly "in_progress": number; readonly "lateness_ms": number }; readonly "wallets": { readonly "drift": number; readonly "drifting_user_ids": Array<string>; readonly "budget_drift": number; readonly "audited_at": string | null; readonly "budgets_audited_at": string | null }; readonly "store": { readonly "restored_at": string | null; readonly "trusted_until": string | null; readonly "tasks_in_doubt": number } }
  DeletedUser: { readonly "id": string; readonly "deleted": true; readonly "deleted_at": string; readonly "erased_at": string | null }
  AuditEntry: { readonly "id": string; readonly "type": string; readonly "actor": Schemas["AuditActor"]; readonly "user_id": string | null; readonly "resource_id": string | null; readonly "changes": Readonly<Record<string, unknown>>; readonly "trace_id": string | null; readonly "created_at": string }
  AuditActor: { readonly "type": "operator" | "api_key" | "session"; readonly "id": string | null; readonly "user_id": string | null; readonly "ip_address": string | null }
  WebhookDelivery: { readonly "id": string; readonly "endpoint_id": string; readonly "event_id": string; readonly "type": "task.created" | "task.succeeded" | "task.failed" | "balance.low"; readonly "task_id": string | null; readonly "status": "pending" | "delivering" | "succeeded" | "failed" | "skipped"; readonly "attempt_count": number; readonly "next_attempt_at": string | null; readonly "created_at": string; readonly "updated_at": string }
  RedeliveredWebhookDeliveries: { readonly "redelivered": number; readonly "next_cursor": string | null }
  RedeliverWebhookDeliveries: { readonly "filter": Schemas["RedeliveryFilter"]; readonly "cursor"?: string }
  RedeliveryFilter: { readonly "endpoint_id"?: string; readonly "status"?: "succeeded" | "failed" | "skipped"; readonly "type"?: "task.created" | "task.succeeded" | "task.failed" | "balance.low"; readonly "since"?: string; readonly "until"?: string }
  WebhookDeliveryWithAttempts: { readonly "id": string; readonly "endpoint_id": string; readonly "event_id": string; readonly "type": "task.created" | "task.succeeded" | "task.failed" | "balance.low"; readonly "task_id": string | null; readonly "status": "pending" | "delivering" | "succeeded" | "failed" | "skipped"; readonly "attempt_count": number; readonly "next_attempt_at": string | null; readonly "created_at": string; readonly "updated_at": string; readonly "body": string; readonly "attempts": Array<Schemas["WebhookAttempt"]> }
  WebhookAttempt: { readonly "seq": number; readonly "due_at": string; readonly "started_at": string; readonly "ended_at": string | null; readonly "lateness_ms": number; readonly "remote_address": string | null; readonly "status": number | null; readonly "failure": "dns" | "connect" | "tls" | "timeout" | "http_status" | "redirect" | "protocol" | "blocked" | "payload_too_large" | "lost" | null; readonly "detail": string | null; readonly "answer": string | null }
  VendorAccountCheck: { readonly "ok": boolean; readonly "http_status": number | null; readonly "duration_ms": number; readonly "detail": string | null }
  VendorAccount: { readonly "id": string; readonly "provider": string; readonly "base_url": string; readonly "weight": number; readonly "configured": boolean; readonly "status": "active" | "draining"; readonly "draining_since": string | null; readonly "health": "healthy" | "degraded" | "unavailable"; readonly "circuit": "closed" | "half_open" | "open"; readonly "paused_seconds": number; readonly "models": Array<{ readonly "model": string; readonly "circuit": "closed" | "half_open" | "open"; readonly "paused_seconds": number }>; readonly "slots": { readonly "limit": number | null; readonly "held": number; readonly "waiting": number }; readonly "rate": Array<{ readonly "name": string; readonly "model": string | null; readonly "limit": number; readonly "used": number; readonly "resets_at": string | null }>; readonly "spend_today": string; readonly "last_fault": { readonly "at": string; readonly "model": string; readonly "http_status": number | null; readonly "remedy": string } | null; readonly "failed_check": { readonly "at": string; readonly "http_status": number | null; readonly "detail": string } | null }
  CatalogReload: { readonly "hash": string; readonly "previous_hash": string; readonly "adopted": boolean; readonly "difference": { readonly "added": Array<Schemas["CatalogRowName"]>; readonly "removed": Array<Schemas["CatalogRowName"]>; readonly "changed": Array<Schemas["CatalogChange"]> } }
  CatalogChange: { readonly "type": "media" | "token" | "route" | "alias"; readonly "id": string; readonly "changes": Array<{ readonly "pointer": string; readonly "before": unknown; readonly "after": unknown }> }
  CatalogRowName: { readonly "type": "media" | "token" | "route" | "alias"; readonly "id": string }
  Catalog: { readonly "hash": string; readonly "adopted_at": string | null; readonly "data": Array<Schemas["CatalogRow"]> }
  CatalogRow: { readonly "type": "media" | "token" | "route" | "alias"; readonly "id": string; readonly "price": { readonly "per": "image"; readonly "amount": string } | { readonly "per": "second"; readonly "amount": string; readonly "tiers"?: { readonly "480P"?: string; readonly "720P"?: string; readonly "1080P"?: string } } | { readonly "per": "call"; readonly "amount": string } | Schemas["TokenPrice"]; readonly "valid_from": string | null; readonly "valid_until": string | null; readonly "deprecation": string | null; readonly "sunset": string | null; readonly "replacement": string | null; readonly "source": string | null }
  TokenPrice: { readonly "per": "million_tokens"; readonly "input": string; readonly "output": string; readonly "cached_input": string; readonly "cache_write": string; readonly "cache_write_long": string; readonly "reasoning": string; readonly "audio_input": string; readonly "image_output": string; readonly "long": { readonly "above": number; readonly "input": string; readonly "output": string; readonly "cached_input": string; readonly "cache_write": string; readonly "cache_write_long": string; readonly "reasoning": string; readonly "audio_input": string; readonly "image_output": string } | null }
  TokenModel: { readonly "type": "token"; readonly "vendor": string; readonly "model": string; readonly "path": string; readonly "sandbox": boolean; readonly "candidates"?: Array<{ readonly "vendor": string; readonly "model": string; readonly "weight": number | null }>; readonly "price": Schemas["TokenPrice"]; readonly "valid_from": string | null; readonly "valid_until": string | null; readonly "deprecation": string | null; readonly "sunset": string | null; readonly "replacement": string | null; readonly "source": string | null; readonly "input_tokens_max": number; readonly "output_tokens_max": number; readonly "body_schema": Readonly<Record<string, unknown>> }
  Model: { readonly "type": "media"; readonly "vendor": string; readonly "model": string; readonly "path": string; readonly "sandbox": boolean; readonly "candidates"?: Array<{ readonly "vendor": string; readonly "model": string; readonly "weight": number | null }>; readonly "result": "images" | "videos" | "audios"; readonly "price": { readonly "per": "image"; readonly "amount": string } | { readonly "per": "second"; readonly "amount": string; readonly "tiers"?: { readonly "480P"?: string; readonly "720P"?: string; readonly "1080P"?: string } } | { readonly "per": "call"; readonly "amount": string }; readonly "valid_from": string | null; readonly "valid_until": string | null; readonly "deprecation": string | null; readonly "sunset": string | null; readonly "replacement": string | null; readonly "source": string | null; readonly "body_schema": Readonly<Record<string, unknown>>; readonly "media": Readonly<Record<string, Schemas["MediaField"]>> }
  MediaField: { readonly "kind": "image" | "audio" | "video"; readonly "media_types": Array<string>; readonly "max_bytes": number; readonly "min_side": number | null; readonly "max_side": number | null; readonly "min_seconds": number | null; readonly "max_seconds": number | null; readonly "inline": boolean }
  TaskTimeline: { readonly "id": string; readonly "vendor": string; readonly "model": string; readonly "action": "generation" | "edit"; readonly "status": "pending" | "processing" | "completed" | "failed"; readonly "error": Schemas["TaskError"] | null; readonly "sandbox": boolean; readonly "receipt": Schemas["Receipt"]; readonly "catalog": string | null; readonly "trace_id": string | null; readonly "created_at": string; readonly "started_at": string | null; readonly "ended_at": string | null; readonly "metadata"?: Schemas["Metadata"]; readonly "body": unknown; readonly "inputs": Array<Schemas["TaskInput"]>; readonly "result_kind": "images" | "videos" | "audios"; readonly "result": Array<string> | null; readonly "candidates"?: Array<Schemas["TaskCandidate"]>; readonly "moves": Array<Schemas["TaskMove"]>; readonly "attempts": Array<Schemas["VendorAttempt"]>; readonly "entries": Array<Schemas["WalletEntry"]>; readonly "deliveries": Array<Schemas["TaskDelivery"]> }
  TaskDelivery: { readonly "id": string; readonly "endpoint_id": string; readonly "event_id": string; readonly "type": string; readonly "status": "pending" | "delivering" | "succeeded" | "failed" | "skipped"; readonly "trace_id": string | null; readonly "created_at": string; readonly "updated_at": string; readonly "attempts": Array<{ readonly "seq": number; readonly "due_at": string | null; readonly "started_at": string | null; readonly "ended_at": string | null; readonly "status": number | null; readonly "failure": "dns" | "connect" | "tls" | "timeout" | "http_status" | "redirect" | "protocol" | "blocked" | "payload_too_large" | "lost" | null }> }
  WalletEntry: { readonly "seq": number; readonly "kind": "top_up" | "adjustment" | "hold" | "capture" | "release" | "late_charge"; readonly "amount": string; readonly "settled_after": string; readonly "held_after": string; readonly "task_id": string | null; readonly "note": string | null; readonly "trace_id": string | null; readonly "created_at": string }
  VendorAttempt: { readonly "n": number; readonly "vendor": string; readonly "account_id": string; readonly "state": "submitting" | "submitted" | "refused" | "ambiguous"; readonly "failure_class": string | null; readonly "started_at": string; readonly "answered_at": string | null }
  TaskMove: { readonly "status": "pending" | "processing" | "completed" | "failed"; readonly "at": string; readonly "trace_id": string | null }
  TaskCandidate: { readonly "vendor": string; readonly "model": string; readonly "price": string | null; readonly "skipped": { readonly "reason": "not_sold" | "body" | "sandbox" | "no_route" | "no_account" | "circuit_open" | "rate_limited" | "unavailable" | "account_refused" | "model_gone"; readonly "at": string; readonly "attempt": number | null } | null }
  TaskInput: { readonly "pointer": string; readonly "media_type": string; readonly "size": number; readonly "url": string; readonly "expires_at": string }
  Receipt: { readonly "held": string; readonly "captured": string; readonly "released": string; readonly "currency": "credits"; readonly "vendor"?: string; readonly "model"?: string; readonly "skipped"?: Array<Schemas["SkippedModel"]> }
  SkippedModel: { readonly "vendor": string; readonly "model": string; readonly "reason": "not_sold" | "body" | "sandbox" | "no_route" | "no_account" | "circuit_open" | "rate_limited" | "unavailable" | "account_refused" | "model_gone" }
  TaskListItem: { readonly "id": string; readonly "vendor": string; readonly "model": string; readonly "action": "generation" | "edit"; readonly "status": "pending" | "processing" | "completed" | "failed"; readonly "error": Schemas["TaskError"] | null; readonly "sandbox": boolean; readonly "receipt": Schemas["Receipt"]; readonly "catalog": string | null; readonly "trace_id": string | null; readonly "created_at": string; readonly "started_at": string | null; readonly "ended_at": string | null; readonly "metadata"?: Schemas["Metadata"] }
  WebhookSignatureReport: { readonly "valid": boolean; readonly "findings": Array<{ readonly "code": "missing_header" | "malformed_timestamp" | "skew" | "wrong_prefix" | "unknown_delivery" | "other_endpoint" | "bytes_changed" | "old_secret" | "wrong_secret" | "signature_mismatch"; readonly "detail": string }> }
  ReceivedWebhookDelivery: { readonly "headers": Readonly<Record<string, string>>; readonly "body"?: string; readonly "body_base64"?: string; readonly "secret"?: string; readonly "received_at"?: string }
  RecoveredWebhookDeliveries: { readonly "recovered": number; readonly "has_more": boolean }
  RecoverWebhookDeliveries: { readonly "since": string }
  WebhookEndpointWithSecret: { readonly "id": string; readonly "url": string; readonly "events": Array<"task.created" | "task.succeeded" | "task.failed" | "balance.low">; readonly "description": string | null; readonly "enabled": boolean; readonly "secret": string; readonly "secret_preview": string; readonly "old_secret_expires_at": string | null; readonly "created_at": string; readonly "updated_at": string }
  WebhookEndpoint: { readonly "id": string; readonly "url": string; readonly "events": Array<"task.created" | "task.succeeded" | "task.failed" | "balance.low">; readonly "description": string | null; readonly "enabled": boolean; readonly "secret_preview": string; readonly "old_secret_expires_at": string | null; readonly "created_at": string; readonly "updated_at": string; readonly "health": Schemas["WebhookEndpointHealth"] }
  WebhookEndpointHealth: { readonly "status": "unknown" | "healthy" | "failing"; readonly "failed_attempts": number; readonly "last_attempt": { readonly "started_at": string; readonly "status": number | null; readonly "failure": "dns" | "connect" | "tls" | "timeout" | "http_status" | "redirect" | "protocol" | "blocked" | "payload_too_large" | "lost" | null } | null }
  WebhookEndpointChange: { readonly "url"?: string; readonly "events"?: Array<"task.created" | "task.succeeded" | "task.failed" | "balance.low">; readonly "description"?: string | null; readonly "enabled"?: boolean }
  NewWebhookEndpoint: { readonly "url": string; readonly "events": Array<"task.created" | "task.succeeded" | "task.failed" | "balance.low">; readonly "description"?: string | null; readonly "enabled"?: boolean }
  Reconciliation: { readonly "vendor": string; readonly "from": string; readonly "to": string; readonly "lines": number; readonly "billed": string; readonly "matched": number; readonly "bought_not_charged": { readonly "count": number; readonly "billed": string; readonly "data": Array<{ readonly "id": string | null; readonly "model": string; readonly "day": string; readonly "billed": string; readonly "task_id": string | null; readonly "call_id": string | null }> }; readonly "charged_not_bought": { readonly "count": number; readonly "charged": string; readonly "data": Array<{ readonly "task_id": string | null; readonly "call_id": string | null; readonly "model": string; readonly "day": string; readonly "charged": string }> }; readonly "differences": Array<{ readonly "day": string; readonly "model": string; readonly "billed": string; readonly "charged": string; readonly "difference": string }> }
  UsageRebuild: { readonly "corrected": number }
  Usage: { readonly "day": string | null; readonly "user": string | null; readonly "key": string | null; readonly "vendor": string | null; readonly "model": string | null; readonly "sandbox": boolean | null; readonly "tasks": number; readonly "calls": number; readonly "units": Schemas["UsageUnits"]; readonly "amount": string }
  UsageUnits: { readonly "input_tokens": number; readonly "input_cached_tokens": number; readonly "output_tokens": number; readonly "images": number; readonly "videos": number; readonly "audios": number; readonly "seconds": number }
  Call: { readonly "id": string; readonly "vendor": string; readonly "model": string | null; readonly "route": string; readonly "outcome": "settled" | "released" | "lost"; readonly "charged_late": boolean; readonly "http_status": number | null; readonly "held": string; readonly "cost": string; readonly "usage": Readonly<Record<string, unknown>> | null; readonly "account_id": string | null; readonly "time_to_first_token_ms": number | null; readonly "sandbox": boolean; readonly "alias"?: string; readonly "skipped"?: Array<Schemas["SkippedModel"]>; readonly "catalog": string | null; readonly "trace_id": string | null; readonly "created_at": string; readonly "ended_at": string }
  Wallet: { readonly "available_balance": string; readonly "settled_balance": string; readonly "held_balance": string; readonly "trigger_threshold": string; readonly "currency": "credits"; readonly "state": "NORMAL" | "ALERTED" }
  RotatedApiKey: { readonly "id": string; readonly "preview": string; readonly "name": string; readonly "scopes": Array<"inference" | "manage">; readonly "created_at": string; readonly "expires_at": string | null; readonly "last_used_at": string | null; readonly "spend_limit": string | null; readonly "reset": "daily" | "weekly" | "monthly" | "never" | null; readonly "spent": string | null; readonly "held": string | null; readonly "remaining": string | null; readonly "resets_at": string | null; readonly "allowed_models": Array<string> | null; readonly "rate_limit_per_minute": number | null; readonly "concurrent_tasks": number | null; readonly "old_key_expires_at": string | null; readonly "key": string }
  ApiKeyRotation: { readonly "grace_seconds"?: number }
  ApiKey: { readonly "id": string; readonly "preview": string; readonly "name": string; readonly "scopes": Array<"inference" | "manage">; readonly "created_at": string; readonly "expires_at": string | null; readonly "last_used_at": string | null; readonly "spend_limit": string | null; readonly "reset": "daily" | "weekly" | "monthly" | "never" | null; readonly "spent": string | null; readonly "held": string | null; readonly "remaining": string | null; readonly "resets_at": string | null; readonly "allowed_models": Array<string> | null; readonly "rate_limit_per_minute": number | null; readonly "concurrent_tasks": number | null; readonly "old_key_expires_at": string | null }
  ApiKeyChange: { readonly "name"?: string; readonly "spend_limit"?: string | null; readonly "reset"?: "daily" | "weekly" | "monthly" | "never"; readonly "allowed_models"?: Array<string> | null; readonly "rate_limit_per_minute"?: number | null; readonly "concurrent_tasks"?: number | null; readonly "expires_at"?: string | null }
  CreatedApiKey: { readonly "id": string; readonly "key": string; readonly "preview": string; readonly "name": string; readonly "scopes": Array<"inference" | "manage">; readonly "created_at": string; readonly "expires_at": string | null }
  NewApiKey: { readonly "name": string; readonly "scopes"?: Array<"inference" | "manage">; readonly "expires_at"?: string | null }
  User: { readonly "id": string; readonly "email": string; readonly "name": string | null; readonly "created_at": string; readonly "disabled": boolean; readonly "trigger_threshold": string; readonly "rate_limit_per_minute": number | null; readonly "concurrent_tasks": number | null }
  UserChange: { readonly "email"?: string; readonly "name"?: string | null; readonly "password"?: string | null; readonly "disabled"?: boolean; readonly "trigger_threshold"?: string; readonly "rate_limit_per_minute"?: number | null; readonly "concurrent_tasks"?: number | null }
  Problem: { readonly "type": string; readonly "title": string; readonly "status": number; readonly "detail": string; readonly "instance": string; readonly "code": 1001 | 1002 | 1003 | 1004 | 1005 | 1006 | 1007 | 1101 | 1102 | 1103 | 1201 | 1202 | 1203 | 2001 | 2002 | 2003 | 2004 | 2005 | 2006 | 2007 | 2008 | 2010 | 2011 | 2012 | 2013 | 2014 | 2015 | 2016 | 2017 | 2018 | 2019 | 2020 | 5000 | 5002 | 5003 | 5004; readonly "errors"?: Array<{ readonly "pointer": string; readonly "detail": string }>; readonly "remaining"?: string; readonly "task"?: { readonly "id": string; readonly "url": string; readonly "status": "pending" | "processing" | "completed" | "failed"; readonly "error"?: Schemas["TaskError"] }; readonly "error"?: { readonly "message": string; readonly "type"?: string; readonly "param"?: string | null; readonly "code"?: string | number; readonly "status"?: string }; readonly "request_id"?: string }
}

/** Their GET takes `user_id`, by which the operator reads what a user has. */
export const pathsOfUser: ReadonlyArray<string> = ["/manage/v1/api-keys", "/manage/v1/api-keys/{id}", "/manage/v1/wallet", "/manage/v1/wallet/entries", "/manage/v1/calls", "/manage/v1/calls/{id}", "/manage/v1/usage", "/manage/v1/webhook-endpoints", "/manage/v1/webhook-endpoints/{id}", "/manage/v1/tasks", "/manage/v1/tasks/{id}", "/manage/v1/webhook-deliveries", "/manage/v1/webhook-deliveries/{id}", "/manage/v1/audit-log", "/manage/v1/sessions", "/manage/v1/events"]

export interface paths {
  "/manage/v1/users": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["User"]>; readonly "next_cursor": string | null } } }; default: Failure } }
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody: { content: { "application/json": { readonly "email": string; readonly "name"?: string | null; readonly "password"?: string } } }; responses: { 201: { headers: Headers_; content: { "application/json": Schemas["User"] } }; default: Failure } }
  }
  "/manage/v1/users/{id}": {
    get: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["User"] } }; default: Failure } }
    patch: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": Schemas["UserChange"] } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["User"] } }; default: Failure } }
    delete: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 202: { headers: Headers_; content: { "application/json": Schemas["DeletedUser"] } }; default: Failure } }
  }
  "/manage/v1/users/{id}/api-keys": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": Schemas["NewApiKey"] } }; responses: { 201: { headers: Headers_; content: { "application/json": Schemas["CreatedApiKey"] } }; default: Failure } }
  }
  "/manage/v1/users/{id}/top-ups": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": { readonly "amount": string; readonly "note"?: string | null } } }; responses: { 201: { headers: Headers_; content: { "application/json": Schemas["Wallet"] } }; default: Failure } }
  }
  "/manage/v1/users/{id}/adjustments": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": { readonly "amount": string; readonly "note": string } } }; responses: { 201: { headers: Headers_; content: { "application/json": Schemas["Wallet"] } }; default: Failure } }
  }
  "/manage/v1/api-keys": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "user_id"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["ApiKey"]>; readonly "next_cursor": string | null } } }; default: Failure } }
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody: { content: { "application/json": Schemas["NewApiKey"] } }; responses: { 201: { headers: Headers_; content: { "application/json": Schemas["CreatedApiKey"] } }; default: Failure } }
  }
  "/manage/v1/api-keys/{id}": {
    get: { parameters: { query?: { readonly "user_id"?: string }; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["ApiKey"] } }; default: Failure } }
    patch: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": Schemas["ApiKeyChange"] } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["ApiKey"] } }; default: Failure } }
    delete: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Headers_; content?: never }; default: Failure } }
  }
  "/manage/v1/api-keys/{id}/rotate": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": Schemas["ApiKeyRotation"] } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["RotatedApiKey"] } }; default: Failure } }
  }
  "/manage/v1/wallet": {
    get: { parameters: { query?: { readonly "user_id"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Wallet"] } }; default: Failure } }
    patch: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody: { content: { "application/json": { readonly "trigger_threshold": string } } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Wallet"] } }; default: Failure } }
  }
  "/manage/v1/wallet/entries": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "kind"?: "top_up" | "adjustment" | "hold" | "capture" | "release" | "late_charge"; readonly "task_id"?: string; readonly "since"?: string; readonly "until"?: string; readonly "trace_id"?: string; readonly "min_amount"?: string; readonly "max_amount"?: string; readonly "format"?: "json" | "csv"; readonly "user_id"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["WalletEntry"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/users/{id}/wallet": {
    get: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Wallet"] } }; default: Failure } }
  }
  "/manage/v1/users/{id}/wallet/entries": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "kind"?: "top_up" | "adjustment" | "hold" | "capture" | "release" | "late_charge"; readonly "task_id"?: string; readonly "since"?: string; readonly "until"?: string; readonly "trace_id"?: string; readonly "min_amount"?: string; readonly "max_amount"?: string; readonly "format"?: "json" | "csv" }; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["WalletEntry"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/calls": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "user_id"?: string; readonly "since"?: string; readonly "until"?: string; readonly "trace_id"?: string; readonly "min_cost"?: string; readonly "max_cost"?: string; readonly "outcome"?: "settled" | "released" | "lost"; readonly "api_key_id"?: string; readonly "vendor"?: string; readonly "model"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["Call"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/calls/{id}": {
    get: { parameters: { query?: { readonly "user_id"?: string }; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Call"] } }; default: Failure } }
  }
  "/manage/v1/usage": {
    get: { parameters: { query?: { readonly "from"?: string; readonly "to"?: string; readonly "group_by"?: string; readonly "user_id"?: string; readonly "api_key_id"?: string; readonly "vendor"?: string; readonly "model"?: string; readonly "sandbox"?: "true" | "false"; readonly "format"?: "json" | "csv"; readonly "cursor"?: string; readonly "limit"?: number }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["Usage"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/usage/rebuild": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody: { content: { "application/json": { readonly "from": string; readonly "to": string; readonly "user_id"?: string } } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["UsageRebuild"] } }; default: Failure } }
  }
  "/manage/v1/reconciliations": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody: { content: { "application/json": { readonly "vendor": "openai" | "dashscope" | "gemini" | "fal" | "replicate" | "anthropic"; readonly "bill": string; readonly "columns"?: { readonly "id"?: string; readonly "model"?: string; readonly "date"?: string; readonly "amount"?: string } } } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Reconciliation"] } }; default: Failure } }
  }
  "/manage/v1/webhook-endpoints": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "user_id"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["WebhookEndpoint"]>; readonly "next_cursor": string | null } } }; default: Failure } }
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody: { content: { "application/json": Schemas["NewWebhookEndpoint"] } }; responses: { 201: { headers: Headers_; content: { "application/json": Schemas["WebhookEndpointWithSecret"] } }; default: Failure } }
  }
  "/manage/v1/webhook-endpoints/{id}": {
    get: { parameters: { query?: { readonly "user_id"?: string }; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["WebhookEndpoint"] } }; default: Failure } }
    patch: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": Schemas["WebhookEndpointChange"] } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["WebhookEndpoint"] } }; default: Failure } }
    delete: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Headers_; content?: never }; default: Failure } }
  }
  "/manage/v1/webhook-endpoints/{id}/rotate": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["WebhookEndpointWithSecret"] } }; default: Failure } }
  }
  "/manage/v1/webhook-endpoints/{id}/test": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 202: { headers: Headers_; content: { "application/json": { readonly "event_id": string; readonly "delivery_id": string } } }; default: Failure } }
  }
  "/manage/v1/webhook-endpoints/{id}/recover": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": Schemas["RecoverWebhookDeliveries"] } }; responses: { 202: { headers: Headers_; content: { "application/json": Schemas["RecoveredWebhookDeliveries"] } }; default: Failure } }
  }
  "/manage/v1/webhook-endpoints/{id}/debug-signature": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody: { content: { "application/json": Schemas["ReceivedWebhookDelivery"] } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["WebhookSignatureReport"] } }; default: Failure } }
  }
  "/manage/v1/tasks": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "since"?: string; readonly "until"?: string; readonly "trace_id"?: string; readonly "min_cost"?: string; readonly "max_cost"?: string; readonly "user_id"?: string; readonly "status"?: "pending" | "processing" | "completed" | "failed"; readonly "api_key_id"?: string; readonly "model"?: string; readonly "vendor"?: string; readonly "metadata"?: Readonly<Record<string, string>> }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["TaskListItem"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/tasks/{id}": {
    get: { parameters: { query?: { readonly "user_id"?: string }; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["TaskTimeline"] } }; default: Failure } }
  }
  "/manage/v1/models": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["Model"] | Schemas["TokenModel"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/catalog": {
    get: { parameters: { query?: { readonly "hash"?: string; readonly "at"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Catalog"] } }; default: Failure } }
  }
  "/manage/v1/catalog/reload": {
    post: { parameters: { query?: { readonly "dry_run"?: "true" | "false" }; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["CatalogReload"] } }; default: Failure } }
  }
  "/manage/v1/accounts": {
    get: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["VendorAccount"]>; readonly "next_cursor": null } } }; default: Failure } }
  }
  "/manage/v1/accounts/{id}/drain": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["VendorAccount"] } }; default: Failure } }
  }
  "/manage/v1/accounts/{id}/resume": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["VendorAccount"] } }; default: Failure } }
  }
  "/manage/v1/accounts/{id}/check": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["VendorAccountCheck"] } }; default: Failure } }
  }
  "/manage/v1/webhook-deliveries": {
    get: { parameters: { query?: { readonly "endpoint_id"?: string; readonly "task_id"?: string; readonly "since"?: string; readonly "until"?: string; readonly "trace_id"?: string; readonly "status"?: "pending" | "delivering" | "succeeded" | "failed" | "skipped"; readonly "type"?: "task.created" | "task.succeeded" | "task.failed" | "balance.low"; readonly "cursor"?: string; readonly "limit"?: number; readonly "user_id"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["WebhookDelivery"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/webhook-deliveries/{id}": {
    get: { parameters: { query?: { readonly "user_id"?: string }; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["WebhookDeliveryWithAttempts"] } }; default: Failure } }
  }
  "/manage/v1/webhook-deliveries/redeliver": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody: { content: { "application/json": Schemas["RedeliverWebhookDeliveries"] } }; responses: { 202: { headers: Headers_; content: { "application/json": Schemas["RedeliveredWebhookDeliveries"] } }; default: Failure } }
  }
  "/manage/v1/webhook-deliveries/{id}/redeliver": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 202: { headers: Headers_; content: { "application/json": Schemas["WebhookDelivery"] } }; default: Failure } }
  }
  "/manage/v1/audit-log": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "user_id"?: string; readonly "type"?: string; readonly "actor_id"?: string; readonly "resource_id"?: string; readonly "since"?: string; readonly "until"?: string; readonly "format"?: "json" | "csv" }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["AuditEntry"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/users/{id}/export": {
    get: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/x-ndjson": string } }; default: Failure } }
  }
  "/manage/v1/queues": {
    get: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Queues"] } }; default: Failure } }
  }
  "/manage/v1/session": {
    get: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Session"] } }; default: Failure } }
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path?: never; cookie?: never }; requestBody: { content: { "application/json": { readonly "email"?: string; readonly "password"?: string; readonly "api_key"?: string; readonly "operator_token"?: string; readonly "link"?: string } } }; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Session"] } }; default: Failure } }
    delete: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 204: { headers: Headers_; content?: never }; default: Failure } }
  }
  "/manage/v1/sessions": {
    get: { parameters: { query?: { readonly "cursor"?: string; readonly "limit"?: number; readonly "user_id"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": { readonly "data": Array<Schemas["Session"]>; readonly "next_cursor": string | null } } }; default: Failure } }
  }
  "/manage/v1/sessions/{id}": {
    delete: { parameters: { query?: never; header?: never; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 204: { headers: Headers_; content?: never }; default: Failure } }
  }
  "/manage/v1/users/{id}/sign-in-links": {
    post: { parameters: { query?: never; header?: { readonly "Idempotency-Key"?: string }; path: { readonly "id": string }; cookie?: never }; requestBody?: never; responses: { 201: { headers: Headers_; content: { "application/json": Schemas["SignInLink"] } }; default: Failure } }
  }
  "/manage/v1/events": {
    get: { parameters: { query?: { readonly "user_id"?: string; readonly "events"?: string; readonly "since"?: string }; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "text/event-stream": string } }; default: Failure } }
  }
  "/manage/v1/service": {
    get: { parameters: { query?: never; header?: never; path?: never; cookie?: never }; requestBody?: never; responses: { 200: { headers: Headers_; content: { "application/json": Schemas["Service"] } }; default: Failure } }
  }
}
