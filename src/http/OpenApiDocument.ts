import { OpenApi } from "effect/http-api"
import type { Catalog } from "../models/Catalog.ts"
import { jsonSchemaOf } from "../models/Bodies.ts"
import type { CatalogEntry } from "../models/CatalogEntry.ts"
import { Api } from "./Api.ts"

/** The one document: the management API as declared, and each model of the catalog with its own body. */
export const documentedApi = (catalog: Catalog["Service"]) =>
  Api.annotate(OpenApi.Transform, (document) => {
    const paths: Record<string, unknown> = { ...asRecord(document["paths"]) }
    for (const entry of catalog.all) Object.assign(paths, pathsOf(entry))
    return {
      ...document,
      info: {
        ...asRecord(document["info"]),
        title: "Generation Gateway",
        description:
          "One address and one API key in front of many model vendors: asynchronous image and video generation, signed webhooks, a prepaid wallet."
      },
      paths
    }
  })

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? { ...value } : {}

const json = (schema: unknown) => ({ content: { "application/json": { schema } } })

const problem = {
  description: "A problem (RFC 9457)",
  content: {
    "application/problem+json": { schema: { $ref: "#/components/schemas/ProblemDetails" } }
  }
}

const taskInfo = (withStatus: boolean) => ({
  type: "object",
  required: ["id", ...(withStatus ? ["status"] : []), "created_at", "updated_at"],
  properties: {
    id: { type: "string", format: "uuid" },
    ...(withStatus
      ? { status: { type: "string", enum: ["pending", "processing", "completed", "failed"] } }
      : {}),
    created_at: { type: "string", format: "date-time" },
    updated_at: { type: "string", format: "date-time" }
  }
})

const taskError = {
  type: "object",
  required: ["code", "title", "detail"],
  properties: {
    code: { type: "integer" },
    title: { type: "string" },
    detail: { type: "string" }
  }
}

const created = (entry: CatalogEntry) => ({
  type: "object",
  required: ["task_info"],
  properties: { task_info: taskInfo(entry.action === "edit") }
})

const result = (entry: CatalogEntry) => {
  const info = taskInfo(true)
  return {
    type: "object",
    required: ["task_info"],
    properties: {
      task_info: { ...info, properties: { ...info.properties, error: taskError } },
      [entry.result]: { type: "array", items: { type: "string", format: "uri" } }
    }
  }
}

const security = [{ bearer: [] }]

const taskIdParameter = {
  name: "task_id",
  in: "path",
  required: true,
  schema: { type: "string", format: "uuid" }
}

const operationName = (verb: string, { action, model, vendor }: CatalogEntry): string =>
  [verb, vendor, model, action].join("_").replaceAll(/[^A-Za-z0-9]+/gu, "_")

const pathsOf = (entry: CatalogEntry): Record<string, unknown> => {
  const path = `/vendors/${entry.vendor}/v1/${entry.model}/${entry.action}`
  const tags = [entry.vendor]
  return {
    [path]: {
      post: {
        tags,
        security,
        operationId: operationName("create", entry),
        summary: `Create a task of ${entry.model}`,
        requestBody: { required: true, ...json(jsonSchemaOf(entry.label)) },
        responses: {
          202: { description: "The task was accepted", ...json(created(entry)) },
          default: problem
        }
      }
    },
    [`${path}/{task_id}`]: {
      get: {
        tags,
        security,
        operationId: operationName("get", entry),
        summary: `Get a task of ${entry.model}`,
        parameters: [taskIdParameter],
        responses: { 200: { description: "The task", ...json(result(entry)) }, default: problem }
      },
      delete: {
        tags,
        security,
        operationId: operationName("cancel", entry),
        summary: `Cancel a task of ${entry.model}`,
        parameters: [taskIdParameter],
        responses: {
          200: { description: "The cancelled task", ...json(result(entry)) },
          default: problem
        }
      }
    }
  }
}
