import { readModels } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import { CopyButton } from "../../components/CopyButton.tsx"
import { Link } from "../../components/Link.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded } from "../../components/States.tsx"
import { Credits, Json, Time } from "../../components/Values.tsx"
import type { PageProps } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { modelTexts } from "../../texts/en/models.ts"
import { Availability } from "../models/Availability.tsx"
import { ratesOf } from "../models/price.tsx"
import type { AnyModel } from "../models/price.tsx"
import { SchemaTable } from "./SchemaTable.tsx"

const words = modelTexts

/** `/models/:vendor/:model`: price, dates and body of a model; by each of its routes. */
export default function ModelPage({ params: { model = "", vendor = "" } }: PageProps) {
  const models = useResource("models", async () => {
    const all = await readModels()
    return all.filter((it) => it.vendor === vendor && it.model === model)
  })
  const name = `${vendor}/${model}`
  return (
    <>
      <PageHeader title={name} back={{ to: "/models", name: texts.pages.models }}>
        <Link to="/playground" query={{ model: name }} class="button primary">
          {words.tryIt}
        </Link>
        <CopyButton text={model} what={texts.filters.model} label={words.copyName} />
      </PageHeader>
      <p>
        <Link to="/usage" query={{ model, vendor }}>
          {words.usage}
        </Link>
      </p>
      <Loaded of={models}>
        {(found) =>
          found.length === 0 ? (
            <Empty title={words.notFound}>
              <p>{words.notFoundDetail}</p>
            </Empty>
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
  <section>
    <h2>
      <code>POST {of.path}</code>
    </h2>
    {of.candidates !== undefined && <Candidates of={of.candidates} />}
    <div class="columns">
      <section>
        <h3>{words.price}</h3>
        <dl class="pairs">
          {ratesOf(of).map(({ amount, name }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Credits amount={amount} />
              </dd>
            </div>
          ))}
        </dl>
        {of.price.per === "million_tokens" && <p class="faint">{words.perMillion}</p>}
      </section>
      <section>
        <h3>{words.availability}</h3>
        <Availability of={of} />
        <Particulars of={of} />
      </section>
    </div>
    <h3>{words.fields}</h3>
    <SchemaTable schema={of.body_schema} />
    <details>
      <summary>{words.schema}</summary>
      <Json label={words.schema} value={of.body_schema} />
    </details>
  </section>
)

/** The models of an alias. */
const Candidates = ({ of }: { readonly of: NonNullable<AnyModel["candidates"]> }) => (
  <>
    <p>{words.triedInTurn}</p>
    <ol>
      {of.map(({ model, vendor, weight }) => (
        <li key={`${vendor}/${model}`}>
          <Link to={`/models/${encodeURIComponent(vendor)}/${encodeURIComponent(model)}`}>
            {vendor}/{model}
          </Link>
          {weight !== null && ` × ${weight}`}
        </li>
      ))}
    </ol>
  </>
)

const Particulars = ({ of }: { readonly of: AnyModel }) => (
  <dl class="pairs">
    {of.type === "token" && (
      <>
        <div>
          <dt>{words.inputMost}</dt>
          <dd class="number">{of.input_tokens_max.toLocaleString("en")}</dd>
        </div>
        <div>
          <dt>{words.outputMost}</dt>
          <dd class="number">{of.output_tokens_max.toLocaleString("en")}</dd>
        </div>
      </>
    )}
    {of.valid_until !== null && (
      <div>
        <dt>{words.validUntil}</dt>
        <dd>
          <Time at={of.valid_until} />
        </dd>
      </div>
    )}
  </dl>
)
