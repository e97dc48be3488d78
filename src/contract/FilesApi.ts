import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { FileId } from "../domain/Ids.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { FormFile } from "./ImagesApi.ts"
import { listLimit } from "./Lists.ts"
import { problems } from "./Problems.ts"

/** A file in OpenAI's format. docs/reference/files.md */
export const FileObject = Schema.Struct({
  id: FileId,
  object: Schema.Literal("file"),
  bytes: Schema.Int,
  created_at: Schema.Int,
  expires_at: Schema.Int,
  filename: Schema.String,
  purpose: Schema.Literals(["batch", "batch_output"]),
  status: Schema.Literal("processed")
})

export const FileList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(FileObject),
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
  has_more: Schema.Boolean
})

export const DeletedFile = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("file"),
  deleted: Schema.Boolean
})

const params = { file_id: FileId.annotate({ description: "The id that create returned" }) }
const reads = [401, 403, 404, 405, 429, 500, 503]
const theFile = { 200: { description: "The file" } }

export const createFile = HttpApiEndpoint.post("createFile", "/v1/files", {
  payload: Schema.Struct({
    purpose: Schema.Literal("batch"),
    file: FormFile,
    "expires_after[anchor]": Schema.optionalKey(Schema.Literal("created_at")),
    "expires_after[seconds]": Schema.optionalKey(
      Schema.String.annotate({ description: "From 3600 to 2592000, which is the default" })
    )
  }).pipe(HttpApiSchema.asMultipart()),
  success: FileObject,
  error: problems(400, 401, 403, 404, 405, 413, 415, 429, 500, 503)
}).annotateMerge(
  documented({
    summary: "Upload a file for a batch",
    description: "One request per line, at most 256 MB",
    responses: theFile
  })
)

export const listFiles = HttpApiEndpoint.get("listFiles", "/v1/files", {
  query: {
    after: Schema.optionalKey(FileId),
    limit: Schema.optionalKey(listLimit),
    order: Schema.optionalKey(Schema.Literals(["asc", "desc"])),
    purpose: Schema.optionalKey(Schema.Literals(["batch", "batch_output"]))
  },
  success: FileList,
  error: problems(400, ...reads)
}).annotateMerge(
  documented({ summary: "List files", responses: { 200: { description: "A page" } } })
)

export const getFile = HttpApiEndpoint.get("getFile", "/v1/files/:file_id", {
  params,
  success: FileObject,
  error: problems(...reads)
}).annotateMerge(documented({ summary: "Get a file", responses: theFile }))

export const deleteFile = HttpApiEndpoint.delete("deleteFile", "/v1/files/:file_id", {
  params,
  success: DeletedFile,
  error: problems(...reads)
}).annotateMerge(
  documented({ summary: "Delete a file", responses: { 200: { description: "It was deleted" } } })
)

export const getFileContent = HttpApiEndpoint.get("getFileContent", "/v1/files/:file_id/content", {
  params,
  success: Schema.Uint8Array.pipe(
    HttpApiSchema.asUint8Array({ contentType: "application/octet-stream" })
  ),
  error: problems(...reads)
}).annotateMerge(
  documented({ summary: "Download a file", responses: { 200: { description: "Its bytes" } } })
)

/** Files for batches, in OpenAI's format. docs/reference/files.md */
export class FilesApi extends HttpApiGroup.make("files", { topLevel: true })
  .add(createFile, listFiles, getFile, deleteFile, getFileContent)
  .middleware(InferenceKey) {}
