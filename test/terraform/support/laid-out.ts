import { PieceWriter } from '../../../src/terraform/piece-writer.ts';
import { TerraformLayout } from '../../../src/terraform/terraform-layout.ts';

/** What a layout writes. */
export function laidOut(write: (layout: TerraformLayout) => void): string {
  const pieces: Buffer[] = [];
  const out = new PieceWriter((piece) => pieces.push(Buffer.from(piece)));
  write(new TerraformLayout(out));
  return Buffer.concat([...pieces, out.takeRest()]).toString();
}
