// SPDX-License-Identifier: Apache-2.0
// The tiers of all rules, and files on them by the names that programs use.
#pragma once

#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/stage/tier.h"

namespace weir::layers::stage {

// When a rule with the layer comes into force. Null, or why its tier cannot be used.
const char* begin_tier(const rules::LayerSpec& layer);
// The tier of a rule's layer. Null: it cannot be used, or is not there and not to be made.
const weir::stage::Tier* tier_of(const rules::LayerSpec& layer, bool make);
// Whether it may be there later: nothing is amiss with it so far.
bool may_come(const rules::LayerSpec& layer);
// The first tier from number i on that is there, made by whomever; i becomes its number. Null: no
// more.
const weir::stage::Tier* usable_from(uint32_t& i);
weir::stage::Mode mode_of(const rules::LayerSpec& layer);

// Makes the path of a symbolic link the one where it leads, of which the last component need not
// be there. False: it is no link, or leads nowhere.
bool follow_link(char* key);

// Starts the daemon of the tier where none lives.
void start_daemon(const weir::stage::Tier& tier);

// Of a file that is about to be closed, or handed on to another program.
void close_staged(stack::Layer& layer);

extern const stack::NamesOfLayer kNames;

}  // namespace weir::layers::stage
