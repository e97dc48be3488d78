import { readModels } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import { CopyButton } from "../../components/CopyButton.tsx"
import { Link } from "../../components/Link.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { Credits, Json, Pair, Time } from "../../components/Values.tsx"
import { modelPath } from "../../format/paths.ts"
import type { PageProps } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { modelTexts } from "../../texts/en/models.ts"
import { Availability } from "../models/Availability.tsx"
import { ratesOf } from "../models/price.tsx"
import type { AnyModel } from "../models/price.tsx"
import { SchemaTable } from "./SchemaTable.tsx"

const words = modelTexts

/** `/models/:vendor/:model`: price, dates and request body of a model, for each of its routes. */
export default function ModelPage({ params: { model = "", vendor = "" } }: PageProps) {
  const models = useResource("models", async () => {
    const all = await readModels()
    return all.filter((it) => it.vendor === vendor && it.model === model)
  })
  const name = `${vendor}/${model}`
  return (
    <>
      <PageHeader title={name} back="/models">
        <Link to="/usage" query={{ model, vendor }} class="button">
          {texts.pages.usage}
        </Link>
        <CopyButton text={model} what={filterTexts.model} label={words.copyName} />
        <Link to="/playground" query={{ model: name }} class="button primary">
          {words.tryIt}
        </Link>
      </PageHeader>
      <Loaded of={models}>
        {(found) =>
          found.length === 0 ? (
            <Empty title={words.notFound} detail={words.notFoundDetail} />
          ) : (
            <>
              {found.map((it) => (
                <OneModel key={`${it.type} ${it.path}`} of={it} />
              ))}
            </>
          )
        }
      </Loaded>
    </>
  )
}

const OneModel = ({ of }: { readonly of: AnyModel }) => (
  <section class="route">
    <div class="facts">
      <Availability of={of} />
      <span class="id">
        <code>POST {of.path}</code>
        <CopyButton text={of.path} what={words.path} />
      </span>
    </div>
    {of.candidates !== undefined && <Candidates of={of.candidates} />}
    <div class="columns">
      <section>
        <h2>{words.price}</h2>
        {of.price.per === "expression" && <p class="faint">{words.byRequest}</p>}
        <Rates of={ratesOf(of)} />
      </section>
      <Particulars of={of} />
    </div>
    <h2>{words.fields}</h2>
    <SchemaTable schema={of.body_schema} />
    <details class="schema">
      <summary>{words.schema}</summary>
      <Json label={words.schema} value={of.body_schema} />
    </details>
  </section>
)

/** A single rate needs no name. */
const Rates = ({ of }: { readonly of: ReturnType<typeof ratesOf> }) => {
  const [first, ...others] = of
  if (first === undefined) return null
  if (others.length === 0) return <OneRate {...first} />
  return (
    <dl class="pairs">
      {of.map((rate) => (
        <Pair key={rate.name} name={rate.name}>
          <OneRate {...rate} />
        </Pair>
      ))}
    </dl>
  )
}

const OneRate = ({ amount, unit }: ReturnType<typeof ratesOf>[number]) => (
  <>
    <Credits amount={amount} /> {unit !== undefined && <span class="faint">{unit}</span>}
  </>
)

/** The models of an alias. */
const Candidates = ({ of }: { readonly of: NonNullable<AnyModel["candidates"]> }) => (
  <>
    <p>{words.triedInTurn}</p>
    <ol>
      {of.map(({ model, vendor, weight }) => (
        <li key={`${vendor}/${model}`}>
          <Link to={modelPath({ model, vendor })}>
            {vendor}/{model}
          </Link>
          {weight !== null && ` × ${weight}`}
        </li>
      ))}
    </ol>
  </>
)

const Particulars = ({ of }: { readonly of: AnyModel }) =>
  of.type !== "token" && of.valid_until === null ? null : (
    <section>
      <h2>{words.limits}</h2>
      <dl class="pairs">
        {of.type === "token" && (
          <>
            <Pair name={words.inputMost}>
              <span class="number">{of.input_tokens_max.toLocaleString("en")}</span>
            </Pair>
            <Pair name={words.outputMost}>
              <span class="number">{of.output_tokens_max.toLocaleString("en")}</span>
            </Pair>
          </>
        )}
        {of.valid_until !== null && (
          <Pair name={words.validUntil}>
            <Time at={of.valid_until} />
          </Pair>
        )}
      </dl>
    </section>
  )
