/** A document that changes with its number; about a third of its resources with each. */
export function generatedDocument(number: number, lineage: string, maxResources: number): unknown {
  return {
    version: 4,
    terraform_version: '1.11.4',
    serial: 1,
    lineage,
    outputs: { number: { value: number, type: 'number' } },
    resources: Array.from({ length: (number % maxResources) + 1 }, (_, index) => ({
      mode: 'managed',
      type: 't',
      name: `r${index}`,
      provider: 'provider["x/y/z"]',
      instances: [
        {
          schema_version: 0,
          attributes: { id: String((number + index) % 3 === 0 ? number : index), padding: 'x'.repeat(500) },
        },
      ],
    })),
  };
}
