"""The index of hostile cases: what each is, and the tests that build it.

A test that is renamed, removed, skipped, left to the second tier or emptied of what it checks fails here.
"""

from __future__ import annotations

import pytest

from tests.house import reading

# What somebody brings -> the tests that build it, as module:function
CASES: dict[int, tuple[str, tuple[str, ...]]] = {
    1: ("a .bin that runs a command", (
        "test_store_pytorch:test_code_is_named_and_not_run",
        "test_store_pytorch:test_plain_pickle_with_code",
    )),
    2: ("TorchScript, a tar named .pt, a whole pickled module", (
        "test_store_pytorch:test_torchscript_is_refused",
        "test_store_pytorch:test_tar_named_pt",
        "test_store_pytorch:test_namespace_and_module_are_named",
        "test_store_pytorch:test_no_advice_to_unpickle",
    )),
    3: ("an object of Python in a .bin", (
        "test_store_pytorch:test_namespace_and_module_are_named",
    )),
    4: ("sparse tensors, with indices that lie", (
        "test_store_pytorch:test_sparse_tensors_are_refused",
        "test_hostile_cases:test_sparse_tensors_with_indices_that_lie",
    )),
    5: ("a pickle that asks for memory or time", (
        "test_store_pytorch:test_bytearray_bomb_and_memo_bomb",
        "test_hostile_cases:"
        "test_a_pickle_that_asks_for_memory_is_refused_by_a_worker_that_goes_on",
        "test_hostile_beyond:test_a_memo_handed_out_again_and_again_is_not_copied",
    )),
    6: ("a storage that unpacks to far more than it holds", (
        "test_store_pytorch:test_compressed_storage_is_refused",
        "test_hostile_cases:test_a_storage_packed_a_thousandfold_is_not_unpacked",
    )),
    7: ("a tensor of stride zero that claims any size", (
        "test_store_pytorch:test_stride_zero_cannot_claim_any_size",
    )),
    8: ("an empty .bin, half of one, a pointer to one", (
        "test_store_pytorch:test_truncated_files",
        "test_hostile_cases:test_a_pointer_in_place_of_a_bin",
    )),
    9: ("a state dict in a wrapper", (
        "test_store_pytorch:test_wrapped_state_dict_is_unwrapped_and_said",
        "test_hostile_cases:test_a_wrapped_state_dict_gives_its_own_weights_and_no_random_ones",
    )),
    10: ("a .safetensors that is empty, cut off, overlapping or nested", (
        "test_store_refusals:test_safetensors_that_lie",
        "test_store_refusals:test_half_a_safetensors_file",
    )),
    11: ("a header of too many tensors", (
        "test_store_refusals:test_too_many_tensors",
        "test_store_opening:test_a_header_of_too_many_objects_is_refused_before_they_are_built",
    )),
    12: ("a tensor whose name is markup or turns text around", (
        "test_store_refusals:test_names_that_deceive_are_shown_as_they_are",
        "test_hostile_beyond:test_names_speak_to_no_terminal",
    )),
    13: ("no tensors, or all of them under another name", (
        "test_store_refusals:test_safetensors_that_lie",
        "test_store_refusals:test_all_keys_under_another_name",
    )),
    14: ("an index that points outside, or to a pickle", (
        "test_store_refusals:test_index_that_points_elsewhere",
        "test_hostile_cases:test_an_index_reads_nothing_outside_its_folder",
    )),
    15: ("an index without metadata, or with a tensor that no shard holds", (
        "test_store_refusals:test_index_whose_shards_lack_a_tensor",
        "test_large_hostile:test_an_index_with_a_million_names",
        "test_sets:test_what_from_pretrained_opens_is_opened_with_its_numbers",
    )),
    16: ("a config that asks for a far larger model", (
        "test_store_refusals:test_config_that_lies_is_refused_before_anything_is_built",
        "test_store_opening:test_sizes_that_show_in_no_matrix_of_their_own",
        "test_hostile_beyond:test_a_config_that_repeats_a_layer_without_end",
    )),
    17: ("a config that names a function, replaces a method, or is nested", (
        "test_store_refusals:test_config_that_lies_is_refused_before_anything_is_built",
        "test_store_refusals:test_deep_json",
    )),
    18: ("a checkpoint that brings code, or asks for a kernel", (
        "test_store_refusals:test_code_is_left_out_and_said",
    )),
    19: ("tokenizer settings that name a file outside; a linked vocabulary", (
        "test_store_refusals:test_tokenizer_settings_name_no_other_file",
        "test_archives_and_links:test_a_link_as_vocabulary_stays_inside_the_roots",
        "test_hostile_cases:test_settings_that_name_a_file_outside_read_nothing_there",
    )),
    20: ("no tokenizer", ("test_store_refusals:test_no_tokenizer_is_not_made_up",)),
    21: ("a tokenizer whose pattern never ends", (
        "test_hostile_cases:test_a_pattern_that_never_ends_is_one_sentence",
        "test_hostile_cases:test_a_pattern_that_never_ends_leaves_its_worker_alive",
        "test_hostile_cases:test_a_pattern_that_is_none_is_refused_when_it_is_read",
    )),
    22: ("more ids than rows, and fewer", (
        "test_tokens:test_more_ids_than_rows_is_refused_before_the_forward_pass",
        "test_overview:test_more_and_fewer_ids_than_rows",
        "test_hostile_cases:test_rows_that_no_token_names_are_shown_by_their_ids",
    )),
    23: ("no padding token, no mask token", (
        "test_hostile_cases:test_no_padding_token_is_made_up",
        "test_padding_row:test_gpt2_has_no_padding_and_end_of_text_stands_in",
        "test_masked_lm:test_tokenizer_without_a_mask_is_told",
    )),
    24: ("a text longer than the positions", (
        "test_lens:test_refusals",
        "test_masked_lm:test_refusals",
        "test_tokens:test_positions_are_those_that_the_model_takes",
    )),
    25: ("an unpaired surrogate", ("test_lens:test_refusals", "test_masked_lm:test_refusals")),
    26: ("a row of the embedding that is no number", (
        "test_hostile_cases:test_a_row_that_is_no_number_is_left_out_and_named",
        "test_hostile_cases:"
        "test_no_ranking_is_read_from_a_head_with_a_row_that_is_no_number",
        "test_lens:test_nan_row_is_left_out_and_named",
    )),
    27: ("a vocabulary of three rows", ("test_projection:test_few_rows_get_pca_and_the_reason",)),
    28: ("declared tied, and another decoder in the file", (
        "test_sharing_cases:test_adapter_merged_into_the_head_while_the_config_says_tied",
        "test_sharing_cases:test_t5_whose_file_brings_another_head",
    )),
    29: ("two sets of weights that disagree", (
        "test_store_refusals:test_two_sets_of_weights_are_said",
        "test_hostile_cases:"
        "test_two_sets_of_weights_that_disagree_are_said_and_the_first_is_shown",
    )),
    30: ("a tar that climbs, links or holds a pipe", (
        "test_archives_and_links:test_archive_members_that_climb",
        "test_archives_and_links:test_tar_members_that_are_no_files",
    )),
    31: ("a zip that climbs or unpacks to far too much", (
        "test_archives_and_links:test_archive_members_that_climb",
        "test_archives_and_links:test_zip_bomb_is_stopped_by_counted_bytes",
        "test_archives_and_links:test_zip_with_a_link",
    )),
    32: ("a path that nobody may open", (
        "test_archives_and_links:test_paths_outside_the_roots_all_get_the_same_words",
    )),
    33: ("a bare vocabulary that is cut off, lies, or would grow without end", (
        "test_bare_tokenizers:test_a_file_that_is_no_vocabulary_is_one_sentence",
    )),
}  # fmt: skip


# Files of cases that are made by combining, too many to be listed here.
COMBINED = {f"test_hostile_{what}" for what in ("configs", "files", "tokenizers", "truth", "weights")}


def test_the_cases_are_numbered_without_a_gap_and_differ():
    assert list(CASES) == list(range(1, len(CASES) + 1))
    assert len({what for what, _ in CASES.values()}) == len(CASES)


@pytest.mark.parametrize("number", CASES)
def test_every_case_has_its_tests(number):
    for test in CASES[number][1]:
        module, _, function = test.partition(":")
        found = [path for path in reading.TESTS if path.stem == module and function in reading.functions_of(path)]
        assert len(found) == 1, f"{test} is not there"


def test_every_file_of_hostile_cases_is_in_the_index():
    listed = {test.partition(":")[0] for _, tests in CASES.values() for test in tests}
    files = {path.stem for path in reading.TESTS if path.stem.startswith("test_hostile_")}
    assert files > COMBINED
    assert files - COMBINED <= listed
