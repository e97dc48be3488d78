import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { TaskId } from "../domain/Ids.ts"
import { FieldFault, ProblemCodeSchema, problemCodes } from "../domain/Problem.ts"
import { TaskError, TaskStatus } from "../domain/task/Task.ts"

const UriReference = Schema.String.annotate({ format: "uri-reference" })

/**
 * A problem of RFC 9457 with a code. Routes that the SDKs of OpenAI, Anthropic and Google call also have `error`.
 * docs/reference/errors.md#problem-body
 */
export const ProblemBody = Schema.Struct({
  type: UriReference.annotate({
    description: "The explanation of the code; on Anthropic's routes `error`"
  }),
  title: Schema.String,
  status: Schema.Int.check(Schema.isBetween({ minimum: 400, maximum: 599 })),
  detail: Schema.String,
  instance: UriReference,
  code: ProblemCodeSchema,
  errors: Schema.optionalKey(
    Schema.Array(FieldFault).annotate({
      description: "Every fault of the request, with code 2001"
    })
  ),
  remaining: Schema.optionalKey(
    Schema.String.annotate({
      description: "Credits that the spend limit of the API key leaves, with code 1102"
    })
  ),
  task: Schema.optionalKey(
    Schema.Struct({
      id: TaskId,
      url: Schema.String.annotate({ format: "uri" }),
      status: TaskStatus,
      error: Schema.optionalKey(TaskError)
    }).annotate({ description: "With the codes 2017 to 2019: the task, which exists" })
  ),
  error: Schema.optionalKey(
    Schema.Struct({
      message: Schema.String,
      type: Schema.optionalKey(Schema.String),
      param: Schema.optionalKey(Schema.NullOr(Schema.String)),
      code: Schema.optionalKey(Schema.Union([Schema.String, Schema.Int])),
      status: Schema.optionalKey(Schema.String)
    }).annotate({
      description:
        "On the routes of OpenAI (`message`, `type`, `param`, `code`), Anthropic (`message`, `type`) and Google (`message`, `code`, `status`), as their own clients read it"
    })
  ),
  request_id: Schema.optionalKey(
    Schema.String.annotate({
      description: "On Anthropic's routes only: the trace id of the request"
    })
  )
}).annotate({
  identifier: "Problem",
  description: "RFC 9457 with an additional `code`. Each code is explained at its `type`"
})

const withStatus = (status: number) =>
  ProblemBody.pipe(
    HttpApiSchema.asJson({ contentType: "application/problem+json" }),
    HttpApiSchema.status(status)
  )

const byStatus = new Map<number, ReturnType<typeof withStatus>>(
  Object.values(problemCodes).map(({ status }) => [status, withStatus(status)] as const)
)

/** The problems of an endpoint, by status. */
export const problems = (...statuses: ReadonlyArray<number>) =>
  statuses.flatMap((status) => byStatus.get(status) ?? [])
